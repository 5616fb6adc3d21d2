# SPDX-License-Identifier: Apache-2.0
"""The language of scenarios: connect, send, expect an answer or none yet, wait until a group is as it should be.

Everything that a script does and every answer goes into its transcript, lines of text that begin with the name of
the connection: `A >` a request, with the fields that are not `ordinary_fields`; `A <` its answer, with all fields.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from protocol.apis import ApiKey
from protocol.errors import ErrorCode, ProtocolError
from protocol.kafka_python_messages import find_request_and_response_classes
from protocol.message_codecs import find_message_codec
from tests.kafka.differential.ordinary import BLOBS, TOPICS, ordinary_fields
from tests.kafka.differential.render import Names, Reading, lines, reading, response_fields
from tests.kafka.differential.wire import Wire, frame, request_body, request_header
from tests.protocol.schemas import HOT_APIS, NO_TAGS, present, to_kafka_python
from tests.support.apis import FIRST_FLEXIBLE, SUPPORTED
from tests.support.waiting import wait_until

CLIENT_ID: Final = "client"
ROUND_TRIPS: Final = 3
UNSUPPORTED_VERSION: Final = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")


def api_name(api: int) -> str:
    """`JOIN_GROUP` as `JoinGroup`; the number of an API that does not exist."""
    try:
        return "".join(word.capitalize() for word in ApiKey(api).name.split("_"))
    except ValueError:
        return f"api {api}"


def latest(api: ApiKey) -> int:
    """The highest version that is served."""
    return SUPPORTED[api].max


class ServerUnderTest:
    """Where a script plays. `grace_s`: how long an answer may still take after later requests were answered."""

    def __init__(self, bootstrap: str, *, grace_s: float) -> None:
        self.bootstrap = bootstrap
        self.grace_s = grace_s
        self.topic_ids: dict[str, UUID] = {}

    @property
    def port(self) -> int:
        """The port that clients connect to."""
        return int(self.bootstrap.rpartition(":")[2])


class Script:
    """One play of one scenario on one server."""

    def __init__(self, server: ServerUnderTest, prefix: str) -> None:
        self.server = server
        self.prefix = prefix
        self.names = Names(prefix, server.port, BLOBS)
        for name in TOPICS:
            self.names.know_topic(server.topic_ids[name], name)
        self.transcript: list[str] = []
        self._links: list[Link] = []
        self.is_quiet = False
        self._watcher: Link | None = None
        self._joined: set[str] = set()

    # --- names

    @property
    def group(self) -> str:
        """The id of the scenario's group, "g" in transcripts."""
        return self.id("g")

    def id(self, name: str) -> str:
        """A group or topic of this scenario alone, which transcripts show as `name`."""
        return self.prefix + name

    def topic_id(self, name: str) -> UUID:
        """The id that the server gave to one of the common topics."""
        return self.server.topic_ids[name]

    # --- transcript

    def record(self, head: str, fields: Mapping[str, Any] | None = None) -> None:
        """Add to the transcript, unless this is `quietly`."""
        if not self.is_quiet:
            self.transcript += lines(head, fields or {}, self.names)

    def note(self, text: str) -> None:
        """Say in the transcript what comes next."""
        self.record(f"# {self.names.text(text)}")

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """Leave out of the transcript what is done within: the way to where a scenario begins."""
        before, self.is_quiet = self.is_quiet, True
        try:
            yield
        finally:
            self.is_quiet = before

    # --- connections

    def connect(self, client_id: str | None = CLIENT_ID) -> "Link":
        """A new connection; they are called A, B, C, ... in the transcript."""
        link = Link(self, chr(ord("A") + len(self._links)), client_id)
        self._links.append(link)
        return link

    def close(self) -> None:
        """Close all connections."""
        for link in self._links:
            link.close()
        if self._watcher is not None:
            self._watcher.close()

    # --- waiting

    def watch(self, group_id: str) -> Any:
        """The group as DescribeGroups shows it now; not in the transcript."""
        with self.quietly():
            answer = self.watcher.ask(ApiKey.DESCRIBE_GROUPS, 5, groups=[group_id])
        return answer.groups[0]

    def has_joined(self, group_id: str | None) -> None:
        """Remember that a JoinGroup may have made this group."""
        if group_id:
            self._joined.add(group_id)

    def let_commit(self) -> None:
        """Let Kafka commit what the joins so far wrote; not in the transcript.

        Kafka answers a JoinGroup that makes a group before that group's record is committed, and describes and lists
        groups as they are committed. A LeaveGroup that removes nobody is answered when what its partition wrote
        before it is committed.
        """
        joined, self._joined = self._joined, set()
        with self.quietly():
            for group_id in sorted(joined):
                self.watcher.leave(group_id=group_id, members=[{"member_id": "nobody"}])

    @property
    def watcher(self) -> "Link":
        """The connection that looks at groups, which no transcript shows."""
        if self._watcher is None:
            self._watcher = Link(self, "watcher", "watcher")
        return self._watcher

    def until(self, state: str, *, members: int | None = None, group: str | None = None) -> None:
        """Wait until the group is in this state, with so many members."""
        group_id = self.group if group is None else group

        def reached() -> bool:
            described = self.watch(group_id)
            return described.group_state == state and members in (None, len(described.members))

        counted = "" if members is None else f" with {members} members"
        told = f"{self.names.text(group_id)} is {state}{counted}"
        wait_until(reached, what=lambda: f"{told}; it is {self.watch(group_id)}", interval_s=0.01)
        self.record(f"until {told}")

    def until_gone(self, member_id: str) -> None:
        """Wait until the group has no member of this id; not in the transcript."""

        def gone() -> bool:
            return all(member.member_id != member_id for member in self.watch(self.group).members)

        wait_until(gone, what=f"{member_id} leaves {self.group}", interval_s=0.01)

    def settle(self) -> None:
        """Let the server handle what was sent: it has answered several later requests."""
        for _ in range(ROUND_TRIPS):
            self.watch(self.group)

    def let_pass(self, milliseconds: int) -> None:
        """Let real time pass, at least so much: only where what ends in it cannot be seen otherwise."""
        time.sleep(milliseconds / 1000)
        self.record(f"{milliseconds} ms pass")


class Link:
    """One connection."""

    def __init__(self, script: Script, name: str, client_id: str | None) -> None:
        self.script = script
        self.name = name
        self.client_id = client_id
        self.wire = Wire(script.server.bootstrap)
        self._correlation_id = 0
        self._greet()

    def close(self) -> None:
        """Close it."""
        self.wire.close()

    def _greet(self) -> None:
        """See that the server reads this connection: it might read older ones before it, else."""
        self.wire.send(frame(request_header(ApiKey.API_VERSIONS, 0, 0, None, None)))
        assert self.wire.receive() is not None, "the server does not take connections"

    def hang_up(self) -> None:
        """Close it, as a step of the scenario."""
        self.script.record(f"{self.name} hangs up")
        self.close()

    def send(
        self,
        api: ApiKey,
        version: int | None = None,
        *,
        header_tags: bytes = NO_TAGS,
        body_tags: bytes = NO_TAGS,
        after_body: bytes = b"",
        as_it_comes: bool = False,
        **fields: Any,
    ) -> "Pending":
        """Send a request; fields that are not given are the ordinary ones of `ordinary_fields`.

        `as_it_comes`: the transcript keeps also the order of arrays that are usually sorted.
        """
        chosen = latest(api) if version is None else version
        if api is ApiKey.JOIN_GROUP:
            self.script.has_joined(fields.get("group_id", self.script.group))
        elif api in (ApiKey.DESCRIBE_GROUPS, ApiKey.LIST_GROUPS) and self is not self.script.watcher:
            self.script.let_commit()
        body = request_body(api, chosen, {**ordinary_fields(api, chosen, self.script), **fields}, body_tags)
        flexible = chosen >= FIRST_FLEXIBLE[api]
        shown = dict(fields)
        extra = {"header_tags": header_tags, "body_tags": body_tags}
        shown |= {name: tags for name, tags in extra.items() if tags != NO_TAGS}
        if after_body:
            shown["after_body"] = after_body
        pending = self.send_body(
            api, chosen, body + after_body, shown, header_tags=header_tags if flexible else None
        )
        pending.reading = reading(
            api, chosen, of_all=_asks_for_all(api, chosen, fields), as_it_comes=as_it_comes
        )
        return pending

    def send_body(
        self,
        api: int,
        version: int,
        body: bytes,
        shown: Mapping[str, Any],
        *,
        header_tags: bytes | None = None,
    ) -> "Pending":
        """Send a request with this body after its header; the transcript says `shown`."""
        self._correlation_id += 1
        head = request_header(api, version, self._correlation_id, self.client_id, header_tags)
        return self.send_bytes(api, version, frame(head + body), shown, self._correlation_id)

    def send_bytes(
        self, api: int, version: int, data: bytes, shown: Mapping[str, Any], correlation_id: int
    ) -> "Pending":
        """Send these bytes; an answer is read as that of the api and version."""
        self.script.record(f"{self.name} > {api_name(api)} v{version}", shown)
        self.wire.send(data)
        return Pending(self, api, version, correlation_id)

    def ask(self, api: ApiKey, version: int | None = None, **more: Any) -> Any:
        """Send a request and return its answer, None when the server closes instead."""
        return self.send(api, version, **more).reply()

    # --- the requests of groups, in the latest version unless one is named

    def join(self, version: int | None = None, **fields: Any) -> Any:
        """JoinGroup."""
        return self.ask(ApiKey.JOIN_GROUP, version, **fields)

    def send_join(self, version: int | None = None, **fields: Any) -> "Pending":
        """JoinGroup, whose answer is read later."""
        return self.send(ApiKey.JOIN_GROUP, version, **fields)

    def sync(self, version: int | None = None, **fields: Any) -> Any:
        """SyncGroup."""
        return self.ask(ApiKey.SYNC_GROUP, version, **fields)

    def send_sync(self, version: int | None = None, **fields: Any) -> "Pending":
        """SyncGroup, whose answer is read later."""
        return self.send(ApiKey.SYNC_GROUP, version, **fields)

    def heartbeat(self, version: int | None = None, **fields: Any) -> Any:
        """Heartbeat."""
        return self.ask(ApiKey.HEARTBEAT, version, **fields)

    def leave(self, version: int | None = None, **fields: Any) -> Any:
        """LeaveGroup."""
        return self.ask(ApiKey.LEAVE_GROUP, version, **fields)

    def commit(self, version: int | None = None, **fields: Any) -> Any:
        """OffsetCommit."""
        return self.ask(ApiKey.OFFSET_COMMIT, version, **fields)

    def fetch_offsets(self, version: int | None = None, **fields: Any) -> Any:
        """OffsetFetch."""
        return self.ask(ApiKey.OFFSET_FETCH, version, **fields)

    def delete_offsets(self, version: int | None = None, **fields: Any) -> Any:
        """OffsetDelete."""
        return self.ask(ApiKey.OFFSET_DELETE, version, **fields)

    def describe(self, version: int | None = None, **fields: Any) -> Any:
        """DescribeGroups."""
        return self.ask(ApiKey.DESCRIBE_GROUPS, version, **fields)

    def list_groups(self, version: int | None = None, **fields: Any) -> Any:
        """ListGroups."""
        return self.ask(ApiKey.LIST_GROUPS, version, **fields)

    def delete_groups(self, version: int | None = None, **fields: Any) -> Any:
        """DeleteGroups."""
        return self.ask(ApiKey.DELETE_GROUPS, version, **fields)


def _asks_for_all(api: ApiKey, version: int, fields: Mapping[str, Any]) -> bool:
    """Whether an OffsetFetch asks for all of a group's offsets, or Metadata for all topics."""
    if api is ApiKey.OFFSET_FETCH:
        groups = [fields, *fields.get("groups", ())]
        return any(group.get("topics", ()) is None for group in groups)
    if api is ApiKey.METADATA:
        return fields["topics"] is None or (version == 0 and not fields["topics"])
    return False


def _encodable(api: ApiKey, version: int, answer: Any) -> Any:
    """The answer as its codec encodes it: what our strict reader makes of kafka-python's classes is half made."""
    if api in HOT_APIS:
        return answer
    cls = find_request_and_response_classes(api)[1]
    return to_kafka_python(cls, cls._struct, _values(cls._struct, version, answer), version)


def _values(schema: Any, version: int, message: Any) -> dict[str, Any]:
    values = {}
    for field in present(schema, version):
        value = getattr(message, field.name)
        if value is not None and field.is_struct_array():
            value = [_values(field.array_of, version, item) for item in value]
        elif value is not None and field.is_struct():
            value = _values(field, version, value)
        values[field.name] = value
    return values


class Pending:
    """A request whose answer has not been read."""

    def __init__(self, link: Link, api: int, version: int, correlation_id: int) -> None:
        self._link = link
        self._api = api
        self._version = version
        self._correlation_id = correlation_id
        self.reading: Reading | None = None

    @property
    def _head(self) -> str:
        return f"{self._link.name} < {api_name(self._api)} v{self._version}"

    def is_silent(self) -> None:
        """See that there is no answer yet, although the server has answered later requests on another connection."""
        link = self._link
        link.script.settle()
        if link.wire.is_silent(link.script.server.grace_s):
            link.script.record(f"{self._head}: no answer yet")
        else:
            link.script.record(f"{self._head}: there is an answer already")
            self.reply()

    def has_come(self) -> bool:
        """Whether there is an answer once the server has answered later requests on another connection."""
        script = self._link.script
        if self._link.wire.is_silent(0):
            script.settle()
        return not self._link.wire.is_silent(3 * script.server.grace_s)

    def reply(self) -> Any:
        """Wait for the answer and return it; None when the server closes instead."""
        script = self._link.script
        data = self._link.wire.receive()
        if data is None:
            script.record(f"{self._head}: closed")
            return None
        correlation_id = int.from_bytes(data[:4], "big", signed=True)
        if correlation_id != self._correlation_id:
            script.record(f"{self._head}: answers request {correlation_id}, not {self._correlation_id}")
        return self._read(data)

    def _read(self, data: bytes) -> Any:
        """Decode the body; say so if it is not exactly the bytes that its fields have in this version."""
        script = self._link.script
        if self._api not in SUPPORTED:
            script.record(f"{self._head}: an answer")
            return data
        api = ApiKey(self._api)
        version, pos = self._version, 4
        if api is ApiKey.API_VERSIONS:
            if data[pos : pos + 2] == UNSUPPORTED_VERSION:
                version = 0
        elif version >= FIRST_FLEXIBLE[api]:
            if data[pos] != 0:
                script.record(f"{self._head}: tagged fields in its header")
            pos += 1
        codec = find_message_codec(api, version)
        try:
            answer = codec.decode_response(data, pos)
        except ProtocolError as error:
            script.record(f"{self._head}: cannot be read: {error!r}")
            raise
        if script.is_quiet:
            return answer
        how = self.reading or reading(api, version)
        script.record(self._head, response_fields(how, answer, script.names))
        if codec.encode_response(_encodable(api, version, answer)) != data[pos:]:
            script.record(f"{self._head}: has more than these fields")
        return answer
