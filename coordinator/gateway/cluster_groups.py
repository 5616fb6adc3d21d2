# SPDX-License-Identifier: Apache-2.0
"""Answers requests about groups that are not here with the cluster's data, without moving the groups here.

The client's node is asked which groups are here, on the client's own connection. Requests for the others are sent to
their coordinators in the cluster, as the gateway's user and after the client's own permissions were checked. A group
may move here meanwhile. So the node is asked once more before the response is sent, and for a group that is here by
then the request is sent to the node.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from coordinator.authorization.rule import copy_message_with
from coordinator.gateway import answers
from coordinator.gateway.decode_slots import DecodeSlot, DecodeSlots
from coordinator.gateway.offload import Offloader, is_long
from coordinator.gateway.request_splitting import GroupRequestSplitter, find_splitter
from coordinator.gateway.rewriting import decode_framed_response
from coordinator.gateway.routing_types import (
    COORDINATOR,
    LENGTH_BYTES,
    AwaitedResponseLost,
    ClientSession,
    Route,
)
from coordinator.gateway.version_conversion import (
    convert_ids_to_names,
    convert_names_to_ids,
    upgrade_described_groups_to_v6,
)
from coordinator.runtime.promise import Promise
from coordinator.runtime.tasks import Tasks
from coordinator.telemetry.incidents import Incidents
from coordinator.telemetry.logs import get_logger
from coordinator.upstream.aiokafka_request import UpstreamResponse
from coordinator.upstream.batched_group_requests import BatchedGroupRequester, GroupsResponseOrError, TopicIds
from coordinator.upstream.broker_connection import decode_upstream_answer
from coordinator.upstream.errors import UpstreamError, UpstreamNotKafka
from protocol.apis import ApiKey
from protocol.client_frames import decode_answer, encode_request
from protocol.client_ids import GATEWAY_CLIENT_ID
from protocol.errors import ErrorCode
from protocol.headers import RequestHeader
from protocol.message_codecs import find_message_codec
from protocol.private_messages import LocateGroupsRequest
from protocol.wire import ZERO_UUID

log = get_logger("gateway")

AT_A_TIME: Final = 16
"""The number of requests for which one process may ask the cluster at the same time. Others wait as bytes."""
ROUNDS: Final = 2
"""The number of attempts to get a group from the cluster if its coordinator has moved."""
CORRELATION_ID: Final = -8

MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""The errors after which a coordinator is looked up once more."""
NEEDS: Final = {
    ApiKey.DESCRIBE_GROUPS: ("DESCRIBE", ""),
    ApiKey.OFFSET_FETCH: ("DESCRIBE", "DESCRIBE"),
    ApiKey.DELETE_GROUPS: ("DELETE", ""),
    ApiKey.OFFSET_DELETE: ("DELETE", "READ"),
}
"""The permissions on groups and topics that each api needs at the cluster (KafkaApis)."""
MANY: Final = 100
"""The number of groups above which work on them is done in the thread."""
NOT_ASKED: Final = "the cluster cannot be asked about groups that are not here"
LACKING: Final = "the gateway's user lacks a permission at the cluster"

Rows: TypeAlias = list[tuple[str, Any]]
"""The rows of a response about groups, each with the group's name."""
Errors: TypeAlias = list[tuple[Sequence[str], UpstreamError | None]]
"""The groups in each broker's request, with the error if the broker has not answered, or None."""


class UngrantedGatewayPermission(NamedTuple):
    """A permission at the cluster that the gateway's user lacks."""

    operation: str
    resource: str
    name: str | UUID


class ClusterGroupAnswerer:
    """Answers requests about groups that are not here; PermissionGate calls `answer`."""

    def __init__(
        self,
        questions: BatchedGroupRequester,
        is_known: Callable[[str], bool],
        offloader: Offloader,
        tasks: Tasks,
        mono_ms: Callable[[], int],
    ) -> None:
        """Do not ask the node about groups that are here according to `is_known`."""
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

        `frame` is the request without its length; the response has its length. Returns None if all groups are here, so
        that the request is for the node. Also returns None if the client is gone before the node has reported which
        groups are here: that report may wait behind the node's response to a JoinGroup.

        Raises AwaitedResponseLost if the node is lost.
        """
        unknown = [group for group in dict.fromkeys(groups) if not self._is_known(group)]
        try:
            absent = await self._absent(session, unknown)
        except AwaitedResponseLost:
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
        request = await run(session, partial(answers.decode_coordinator_request, frame), is_long=long)
        rows, are_long = await self._at_cluster(session, route, frame, request, absent)
        still_absent = set(await self._absent(session, absent, discard_readings=route.changes))
        here = set(groups) - still_absent
        own = None
        if here:
            sent = await run(session, partial(_part, route, frame, request, here), is_long=long)
            own = await session.send_own_request(COORDINATOR, sent)
        rows = [(group, row) for group, row in rows if group in still_absent]
        long = long or are_long or (own is not None and is_long(own))
        return await run(session, partial(_joined, route, frame, request, rows, own), is_long=long)

    # --- the location of groups ---

    async def _absent(
        self, session: ClientSession, groups: list[str], *, discard_readings: bool = False
    ) -> list[str]:
        """Return the groups that are not here, as the client's node reports."""
        if not groups:
            return []
        run, many = self._offloader.run, len(groups) > MANY
        question = await run(session, partial(_location, groups, discard_readings), is_long=many)
        answer = await session.send_own_request(COORDINATOR, question)
        return await run(session, partial(_not_here, groups, answer), is_long=many)

    # --- requests to the cluster ---

    async def _at_cluster(
        self, session: ClientSession, route: Route, frame: bytes, request: Any, groups: list[str]
    ) -> tuple[Rows, bool]:
        """Return the cluster's rows for the groups, and whether they are long."""
        rows: Rows = []
        are_long = False
        parts = find_splitter(route.api_key, route.version)
        asked: Collection[str] = groups
        for left in reversed(range(ROUNDS)):
            found = await self._ask(session, route, request, asked)
            read = partial(_read, route, frame, request, found)
            are_long = are_long or any(map(_is_long, found))
            got, lacking, errors = await self._offloader.run(session, read, is_long=are_long)
            self._note_errors(errors)
            self._note_lacking(lacking)
            failed = {name for groups, error in errors if error is not None for name in groups}
            moved = {group for group, row in got if parts.get_error_code(row) in MOVED} - failed
            self._questions.forget_coordinators(moved)
            asked = moved if left else ()
            rows += [(group, row) for group, row in got if group not in asked]
            if not asked:
                break
        return rows, are_long

    def _ask(
        self, session: ClientSession, route: Route, request: Any, groups: Collection[str]
    ) -> Promise[list[GroupsResponseOrError]]:
        promise: Promise[list[GroupsResponseOrError]] = Promise(session.go_on)

        async def ask() -> None:
            found = [GroupsResponseOrError(list(groups), ErrorCode.COORDINATOR_NOT_AVAILABLE)]
            try:
                build = partial(_request, route, request)
                found = await self._questions.send_to_coordinators(
                    ApiKey(route.api_key), route.version, groups, build
                )
            finally:
                promise.resolve(found)

        self._tasks.start(ask(), "ask the cluster about groups")
        return promise

    # --- the log ---

    def _note_errors(self, errors: Errors) -> None:
        for groups, error in errors:
            if error is None:
                self._incidents.end_incident("asking", "the cluster can be asked about groups again")
            else:
                self._incidents.log_repeated_failure(
                    "asking", NOT_ASKED, groups=len(groups), reason=str(error)
                )

    def _note_lacking(self, lacking: Iterable[UngrantedGatewayPermission]) -> None:
        for each in lacking:
            self._incidents.log_repeated_failure(
                each, LACKING, operation=each.operation, resource=each.resource, name=each.name
            )


def _is_long(found: GroupsResponseOrError) -> bool:
    return len(found.groups) > MANY or (
        isinstance(found.answer, UpstreamResponse) and is_long(found.answer.frame)
    )


def _location(groups: list[str], discard_readings: bool) -> bytes:
    request = LocateGroupsRequest(version=0, group_ids=groups, discard_readings=discard_readings)
    header = RequestHeader(ApiKey.LOCATE_GROUPS, 0, CORRELATION_ID, GATEWAY_CLIENT_ID)
    return encode_request(find_message_codec(ApiKey.LOCATE_GROUPS, 0), header, request)


def _not_here(groups: list[str], answer: bytes) -> list[str]:
    """Return the groups that are not here; none after an error of the node, which then answers for all."""
    located = decode_answer(
        find_message_codec(ApiKey.LOCATE_GROUPS, 0), ApiKey.LOCATE_GROUPS, answer, LENGTH_BYTES
    )
    if located.error_code:
        return []
    return [group for group, is_here in zip(groups, located.here, strict=True) if not is_here]


def _part(route: Route, frame: bytes, request: Any, groups: Collection[str]) -> bytes:
    """Return the part of a request that is about these groups, with its length."""
    return answers.encode_changed_request(
        frame, find_splitter(route.api_key, route.version).make_partial_request(request, groups)
    )


def _joined(route: Route, frame: bytes, request: Any, rows: Rows, own: bytes | None) -> bytes:
    """Join the cluster's rows and the response of our node into one response, with its length."""
    parts = find_splitter(route.api_key, route.version)
    nothing = answers.find_request_api(frame).error_response(
        parts.make_partial_request(request, ()), ErrorCode.NONE, route.version
    )
    if own is not None:
        response = decode_framed_response(route.api_key, route.version, own)
        rows = [*rows, *parts.get_response_rows(request, response)]
    return answers.encode_response_to_request(frame, parts.merge_rows(request, nothing, rows))


def _request(route: Route, request: Any, groups: Sequence[str], version: int, ids: TopicIds | None) -> Any:
    """Return the request to a broker about these groups."""
    part = find_splitter(route.api_key, route.version).make_partial_request(request, set(groups))
    if route.api_key == ApiKey.DESCRIBE_GROUPS:  # the operations that are reported are the client's
        return copy_message_with(part, include_authorized_operations=False)
    return part if ids is None else convert_ids_to_names(part, ids)


def _read(
    route: Route, frame: bytes, request: Any, found: Iterable[GroupsResponseOrError]
) -> tuple[Rows, set[UngrantedGatewayPermission], Errors]:
    """Return the cluster's rows for the groups in the client's version, the missing permissions, and the errors.

    The permissions are the ones that the gateway's user lacks at the cluster; the errors state why brokers have not
    answered.
    """
    rows: Rows = []
    errors: Errors = []
    for each in found:
        answered: Rows = []
        error = each.answer if isinstance(each.answer, UpstreamError) else None
        if isinstance(each.answer, UpstreamResponse):
            try:
                answered = _rows(route, request, each, each.answer)
            except UpstreamNotKafka as unreadable:
                error = unreadable
        if not isinstance(each.answer, ErrorCode):
            errors.append((each.groups, error))
        code = each.answer if isinstance(each.answer, ErrorCode) else ErrorCode.COORDINATOR_NOT_AVAILABLE
        missing = set(each.groups) - {group for group, _ in answered}
        rows += [*answered, *_error_rows(route, frame, request, missing, code)]
    return rows, _lacking(ApiKey(route.api_key), find_splitter(route.api_key, route.version), rows), errors


def _lacking(api: ApiKey, parts: GroupRequestSplitter, rows: Rows) -> set[UngrantedGatewayPermission]:
    on_groups, on_topics = NEEDS[api]
    lacking = {
        UngrantedGatewayPermission(on_groups, "group", group)
        for group, row in rows
        if parts.get_error_code(row) == ErrorCode.GROUP_AUTHORIZATION_FAILED
    }
    topics = (topic for _, row in rows for topic in getattr(row, "topics", ()))
    for topic in topics:
        partition = next(iter(topic.partitions), None)  # all of a topic have this error, or none
        if partition is not None and partition.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            topic_id = getattr(topic, "topic_id", ZERO_UUID)
            lacking.add(UngrantedGatewayPermission(on_topics, "topic", topic.name or UUID(bytes=topic_id)))
    return lacking


def _error_rows(route: Route, frame: bytes, request: Any, groups: set[str], error: ErrorCode) -> Rows:
    """Return rows with this error for groups about which no broker has answered."""
    if not groups:
        return []
    parts = find_splitter(route.api_key, route.version)
    part = parts.make_partial_request(request, groups)
    return parts.get_response_rows(
        part, answers.find_request_api(frame).error_response(part, error, route.version)
    )


def _rows(route: Route, request: Any, found: GroupsResponseOrError, answer: UpstreamResponse) -> Rows:
    """Return the rows of a broker's response in the client's version. Raises UpstreamNotKafka."""
    parts = find_splitter(route.api_key, route.version)
    part = parts.make_partial_request(request, set(found.groups))
    response = decode_upstream_answer(answer, f"broker {found.node_id}")
    if found.topic_ids is not None:
        response = convert_names_to_ids(part, response, found.topic_ids)
    elif answer.version < route.version and route.api_key == ApiKey.DESCRIBE_GROUPS:
        response = upgrade_described_groups_to_v6(response)
    return parts.get_response_rows(part, response)
