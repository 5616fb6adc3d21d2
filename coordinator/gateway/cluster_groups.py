# SPDX-License-Identifier: Apache-2.0
"""Requests about groups that are not here are answered with what the cluster has, and nothing moves by that.

The client's node is asked which groups are here, on the client's own connection. The others are asked about at their
coordinators in the cluster, as the gateway's user and after the client's own permissions were checked. A group may come
here meanwhile. So the node is asked once more before the answer goes out, and for a group that is here by then the
request goes to the node.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from coordinator.api.private.locate_groups import API as LOCATE_GROUPS
from coordinator.api.private.locate_groups import LocateGroupsRequest
from coordinator.authorization.rule import changed
from coordinator.gateway import answers
from coordinator.gateway.broker_versions import described_anew, named_by_ids, named_by_names
from coordinator.gateway.decode_slots import DecodeSlot, DecodeSlots
from coordinator.gateway.group_parts import GroupParts, parts_of
from coordinator.gateway.offload import Offloader, is_long
from coordinator.gateway.rewriting import decoded_answer
from coordinator.gateway.routing import COORDINATOR, LENGTH_BYTES, ClientSession, NoResponse, Route
from coordinator.runtime.promise import Promise
from coordinator.runtime.tasks import Tasks
from coordinator.telemetry.incidents import Incidents
from coordinator.telemetry.logs import get_logger
from coordinator.upstream.broker_connection import decoded
from coordinator.upstream.cluster_requests import UpstreamAnswer
from coordinator.upstream.errors import UpstreamError, UpstreamNotKafka
from coordinator.upstream.group_questions import GroupAnswer, GroupQuestions, TopicIds
from protocol.apis import ApiKey
from protocol.client_frames import decode_answer, encode_request
from protocol.errors import ErrorCode
from protocol.headers import RequestHeader
from protocol.wire import ZERO_UUID

log = get_logger("gateway")

AT_A_TIME: Final = 16
"""The number of requests for which one process may ask the cluster at the same time. Others wait as bytes."""
ROUNDS: Final = 2
"""The number of times that the cluster is asked about a group whose coordinator has moved."""
CLIENT_ID: Final = "groupkeeper-gateway"
CORRELATION_ID: Final = -8

MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""Errors after which a coordinator is looked for once more."""
NEEDS: Final = {
    ApiKey.DESCRIBE_GROUPS: ("DESCRIBE", ""),
    ApiKey.OFFSET_FETCH: ("DESCRIBE", "DESCRIBE"),
    ApiKey.DELETE_GROUPS: ("DELETE", ""),
    ApiKey.OFFSET_DELETE: ("DELETE", "READ"),
}
"""The permissions on groups and topics that each api needs at the cluster (KafkaApis)."""
MANY: Final = 100
"""Work on more groups than this is done in the thread."""
NOT_ASKED: Final = "the cluster cannot be asked about groups that are not here"
LACKING: Final = "the gateway's user lacks a permission at the cluster"

Rows: TypeAlias = list[tuple[str, Any]]
"""What is said of groups, each with the group's name."""
Errors: TypeAlias = list[tuple[Sequence[str], UpstreamError | None]]
"""Of each broker that was asked the groups, and why there is no answer about them; None where there is one."""


class MissingPermission(NamedTuple):
    """A permission at the cluster that the gateway's user lacks."""

    operation: str
    resource: str
    name: str | UUID


class ClusterGroups:
    """Answers requests about groups that are not here; `answer` is what PermissionGate asks."""

    def __init__(
        self,
        questions: GroupQuestions,
        is_known: Callable[[str], bool],
        offloader: Offloader,
        tasks: Tasks,
        mono_ms: Callable[[], int],
    ) -> None:
        """`is_known` says of a group that it is known to be here."""
        self._questions = questions
        self._is_known = is_known
        self._offloader = offloader
        self._tasks = tasks
        self._places = DecodeSlots(AT_A_TIME)
        self._incidents = Incidents(log, mono_ms, "warning")

    async def answer(
        self, session: ClientSession, route: Route, frame: bytes, groups: Sequence[str]
    ) -> bytes | None:
        """Answer a request of DescribeGroups, OffsetFetch, DeleteGroups or OffsetDelete about `groups`.

        `frame` is the request without its length, the answer has it. None where all groups are here: the request is
        for the node. So it is if the client is gone before the node has said where they are: the node's answer may
        wait behind that to a JoinGroup. Raises NoResponse where the node is lost.
        """
        unknown = [group for group in dict.fromkeys(groups) if not self._is_known(group)]
        try:
            absent = await self._absent(session, unknown)
        except NoResponse:
            if session.client_is_gone:
                return None
            raise
        if not absent:
            return None
        place = DecodeSlot(self._places, session)
        try:
            await place.acquire()
            return await self._answer(session, route, frame, groups, absent)
        finally:
            place.release()

    async def _answer(
        self, session: ClientSession, route: Route, frame: bytes, groups: Sequence[str], absent: list[str]
    ) -> bytes:
        run, long = self._offloader.run, is_long(frame)
        request = await run(session, partial(answers.decoded, frame), is_long=long)
        rows, are_long = await self._at_cluster(session, route, frame, request, absent)
        still_absent = set(await self._absent(session, absent, discard_readings=route.changes))
        here = set(groups) - still_absent
        own = None
        if here:
            sent = await run(session, partial(_part, route, frame, request, here), is_long=long)
            own = await session.ask(COORDINATOR, sent)
        rows = [(group, row) for group, row in rows if group in still_absent]
        long = long or are_long or (own is not None and is_long(own))
        return await run(session, partial(_joined, route, frame, request, rows, own), is_long=long)

    # --- where groups are ---

    async def _absent(
        self, session: ClientSession, groups: list[str], *, discard_readings: bool = False
    ) -> list[str]:
        """Those of the groups that are not here, as the client's node says."""
        if not groups:
            return []
        run, many = self._offloader.run, len(groups) > MANY
        question = await run(session, partial(_location, groups, discard_readings), is_long=many)
        answer = await session.ask(COORDINATOR, question)
        return await run(session, partial(_not_here, groups, answer), is_long=many)

    # --- what the cluster has ---

    async def _at_cluster(
        self, session: ClientSession, route: Route, frame: bytes, request: Any, groups: list[str]
    ) -> tuple[Rows, bool]:
        """What the cluster says of the groups, and whether that is long."""
        rows: Rows = []
        are_long = False
        parts = parts_of(route.api_key, route.version)
        asked: Collection[str] = groups
        for left in reversed(range(ROUNDS)):
            found = await self._ask(session, route, request, asked)
            read = partial(_read, route, frame, request, found)
            are_long = are_long or any(map(_is_long, found))
            got, lacking, errors = await self._offloader.run(session, read, is_long=are_long)
            self._note_errors(errors)
            self._note_lacking(lacking)
            failed = {name for groups, error in errors if error is not None for name in groups}
            moved = {group for group, row in got if parts.error(row) in MOVED} - failed
            self._questions.forget(moved)
            asked = moved if left else ()
            rows += [(group, row) for group, row in got if group not in asked]
            if not asked:
                break
        return rows, are_long

    def _ask(
        self, session: ClientSession, route: Route, request: Any, groups: Collection[str]
    ) -> Promise[list[GroupAnswer]]:
        promise: Promise[list[GroupAnswer]] = Promise(session.go_on)

        async def ask() -> None:
            found = [GroupAnswer(list(groups), ErrorCode.COORDINATOR_NOT_AVAILABLE)]
            try:
                build = partial(_request, route, request)
                found = await self._questions.ask(ApiKey(route.api_key), route.version, groups, build)
            finally:
                promise.resolve(found)

        self._tasks.start(ask(), "ask the cluster about groups")
        return promise

    # --- what the log says ---

    def _note_errors(self, errors: Errors) -> None:
        for groups, error in errors:
            if error is None:
                self._incidents.is_over("asking", "the cluster can be asked about groups again")
            else:
                self._incidents.fails("asking", NOT_ASKED, groups=len(groups), reason=str(error))

    def _note_lacking(self, lacking: Iterable[MissingPermission]) -> None:
        for each in lacking:
            self._incidents.fails(
                each, LACKING, operation=each.operation, resource=each.resource, name=each.name
            )


def _is_long(found: GroupAnswer) -> bool:
    return len(found.groups) > MANY or (
        isinstance(found.answer, UpstreamAnswer) and is_long(found.answer.frame)
    )


def _location(groups: list[str], discard_readings: bool) -> bytes:
    make: Any = LocateGroupsRequest
    request = make(version=0, group_ids=groups, discard_readings=discard_readings)
    header = RequestHeader(ApiKey.LOCATE_GROUPS, 0, CORRELATION_ID, CLIENT_ID)
    return encode_request(LOCATE_GROUPS.schema.codecs[0], header, request)


def _not_here(groups: list[str], answer: bytes) -> list[str]:
    """A node that does not say where groups are answers for them itself, with its error."""
    located = decode_answer(LOCATE_GROUPS.schema.codecs[0], ApiKey.LOCATE_GROUPS, answer, LENGTH_BYTES)
    if located.error_code:
        return []
    return [group for group, is_here in zip(groups, located.here, strict=True) if not is_here]


def _part(route: Route, frame: bytes, request: Any, groups: Collection[str]) -> bytes:
    """The part of a request that is about these groups, with its length."""
    return answers.request(frame, parts_of(route.api_key, route.version).part(request, groups))


def _joined(route: Route, frame: bytes, request: Any, rows: Rows, own: bytes | None) -> bytes:
    """The answer, with its length, of rows of the cluster and the answer of our node."""
    parts = parts_of(route.api_key, route.version)
    nothing = answers.handled(frame).error_response(parts.part(request, ()), ErrorCode.NONE, route.version)
    if own is not None:
        response = decoded_answer(route.api_key, route.version, own)
        rows = [*rows, *parts.rows(request, response)]
    return answers.answer(frame, parts.joined(request, nothing, rows))


def _request(route: Route, request: Any, groups: Sequence[str], version: int, ids: TopicIds | None) -> Any:
    """What a broker is asked about these groups."""
    part = parts_of(route.api_key, route.version).part(request, set(groups))
    if route.api_key == ApiKey.DESCRIBE_GROUPS:  # the operations that are reported are the client's
        return changed(part, include_authorized_operations=False)
    return part if ids is None else named_by_names(part, ids)


def _read(
    route: Route, frame: bytes, request: Any, found: Iterable[GroupAnswer]
) -> tuple[Rows, set[MissingPermission], Errors]:
    """What the cluster says of the groups, as the client's version has it.

    With what the gateway's user lacks there, and of each broker that was asked why it has not answered.
    """
    rows: Rows = []
    errors: Errors = []
    for each in found:
        answered: Rows = []
        error = each.answer if isinstance(each.answer, UpstreamError) else None
        if isinstance(each.answer, UpstreamAnswer):
            try:
                answered = _rows(route, request, each, each.answer)
            except UpstreamNotKafka as unreadable:
                error = unreadable
        if not isinstance(each.answer, ErrorCode):
            errors.append((each.groups, error))
        code = each.answer if isinstance(each.answer, ErrorCode) else ErrorCode.COORDINATOR_NOT_AVAILABLE
        missing = set(each.groups) - {group for group, _ in answered}
        rows += [*answered, *_error_rows(route, frame, request, missing, code)]
    return rows, _lacking(ApiKey(route.api_key), parts_of(route.api_key, route.version), rows), errors


def _lacking(api: ApiKey, parts: GroupParts, rows: Rows) -> set[MissingPermission]:
    on_groups, on_topics = NEEDS[api]
    lacking = {
        MissingPermission(on_groups, "group", group)
        for group, row in rows
        if parts.error(row) == ErrorCode.GROUP_AUTHORIZATION_FAILED
    }
    topics = (topic for _, row in rows for topic in getattr(row, "topics", ()))
    for topic in topics:
        partition = next(iter(topic.partitions), None)  # all of a topic have this error, or none
        if partition is not None and partition.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            topic_id = getattr(topic, "topic_id", ZERO_UUID)
            lacking.add(MissingPermission(on_topics, "topic", topic.name or UUID(bytes=topic_id)))
    return lacking


def _error_rows(route: Route, frame: bytes, request: Any, groups: set[str], error: ErrorCode) -> Rows:
    """The rows with this error of groups about which no broker has said anything."""
    if not groups:
        return []
    parts = parts_of(route.api_key, route.version)
    part = parts.part(request, groups)
    return parts.rows(part, answers.handled(frame).error_response(part, error, route.version))


def _rows(route: Route, request: Any, found: GroupAnswer, answer: UpstreamAnswer) -> Rows:
    """Return what a broker has answered, as the client's version has it. Raises UpstreamNotKafka."""
    parts = parts_of(route.api_key, route.version)
    part = parts.part(request, set(found.groups))
    response = decoded(answer, f"broker {found.node_id}")
    if found.topic_ids is not None:
        response = named_by_ids(part, response, found.topic_ids)
    elif answer.version < route.version and route.api_key == ApiKey.DESCRIBE_GROUPS:
        response = described_anew(response)
    return parts.rows(part, response)
