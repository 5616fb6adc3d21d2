# SPDX-License-Identifier: Apache-2.0
"""Preparing a measurement as a client would: versions, topic, coordinators, members. Blocking, unhurried."""

import contextlib
import socket
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, Self, TypeVar

from bench import wire
from bench.dialect import Dialect, Member, Topic, nobody
from bench.wire import Api, BadReply, Call

T = TypeVar("T")

RETRY_EVERY_S: Final = 0.02
JOINS_AT_ONCE: Final = (
    128  # a waiting join holds its connection up, so each joining member has one of its own
)
GROUPS_PER_REQUEST: Final = 500
TOPIC_ALREADY_EXISTS: Final = 36
MEMBER_ID_REQUIRED: Final = 79
UNSUPPORTED_VERSION: Final = 35
MAX_REPLY_BYTES: Final = 64 << 20


class Unprepared(Exception):
    """The server could not be brought to where measuring starts."""


class Address(NamedTuple):
    """Where a server listens."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read HOST:PORT. Raises ValueError."""
        host, colon, port = text.rpartition(":")
        if not (host and colon and port.isdecimal()):
            raise ValueError(f"not HOST:PORT: {text!r}")
        return cls(host.strip("[]"), int(port))

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Peer:
    """One blocking connection; requests may be pipelined, replies come in their order."""

    def __init__(self, address: Address, timeout_s: float) -> None:
        self._socket = socket.create_connection(address, timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._input = self._socket.makefile("rb")
        self._waiting: deque[tuple[int, Call]] = deque()
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._input.close()
        self._socket.close()

    def send(self, call: Call) -> None:
        """Send a request. Raises OSError."""
        self._correlation_id += 1
        self._waiting.append((self._correlation_id, call))
        self._socket.sendall(wire.with_correlation_id(call.frame, self._correlation_id))

    def receive(self) -> bytes:
        """The reply to the oldest waiting request. Raises OSError; BadReply for another correlation id."""
        expected, call = self._waiting.popleft()
        (length,) = wire.LENGTH.unpack(self._read(4))
        if not 4 <= length <= MAX_REPLY_BYTES:
            raise BadReply(f"{call.api.name}: a reply of {length} bytes")
        reply = self._read(length)
        (correlation_id,) = wire.LENGTH.unpack_from(reply)
        if correlation_id != expected:
            raise BadReply(f"{call.api.name}: reply to request {correlation_id} instead of {expected}")
        return reply

    def ask(self, call: Call) -> bytes:
        """Send a request and wait for its reply. Raises OSError and BadReply."""
        self.send(call)
        return self.receive()

    def pipeline(self, calls: Iterable[Call], depth: int = 16) -> Iterator[bytes]:
        """The replies to many requests, in order, keeping `depth` requests under way."""
        waiting = iter(calls)
        for call in islice(waiting, depth):
            self.send(call)
        while self._waiting:
            yield self.receive()
            for call in islice(waiting, 1):
                self.send(call)

    def _read(self, size: int) -> bytes:
        data = self._input.read(size)
        if len(data) < size:
            raise ConnectionError("the server closed the connection")
        return data


class Cluster:
    """A server (or several that share the groups) as seen from its bootstrap address."""

    def __init__(
        self, bootstrap: Address, caps: Mapping[str, int] | None = None, timeout_s: float = 30.0
    ) -> None:
        """Connect and agree on versions.

        `caps` holds a highest version by api name. Raises Unprepared when nothing answers within `timeout_s`.
        """
        self._bootstrap = bootstrap
        self._timeout_s = timeout_s
        self._peers: dict[Address, Peer] = {}
        self._found: dict[str, Address] = {}
        self.versions = self.until_good(lambda: self._agree(caps or {}), "ApiVersions")
        self.dialect = Dialect(self.versions)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        for peer in self._peers.values():
            peer.close()
        self._peers.clear()

    def connect(self, address: Address) -> Peer:
        """A new connection; the caller closes it. Raises OSError."""
        return Peer(address, self._timeout_s)

    def peer(self, address: Address | None = None) -> Peer:
        """The connection kept for an address, the bootstrap address by default. Raises OSError."""
        wanted = address or self._bootstrap
        if wanted not in self._peers:
            self._peers[wanted] = self.connect(wanted)
        return self._peers[wanted]

    def until_good(self, attempt: Callable[[], T], what: str) -> T:
        """The first result of `attempt` that is no transient failure. Raises Unprepared after the timeout."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                return attempt()
            except OSError as error:
                self.close()  # the stream is of no more use: another attempt takes a new connection
                reason: Exception = error
            except BadReply as error:
                if not error.transient:
                    raise Unprepared(f"{what}: {error}") from error
                reason = error
            if time.monotonic() > deadline:
                raise Unprepared(f"{what}: still failing after {self._timeout_s:g} s: {reason}") from reason
            time.sleep(RETRY_EVERY_S)

    def _agree(self, caps: Mapping[str, int]) -> dict[str, int]:
        request = wire.API_VERSIONS.request(
            version=3, client_software_name="groupkeeper-bench", client_software_version="1"
        )
        call = wire.encode(wire.API_VERSIONS, 3, request)
        answer = call.decode(self.peer().ask(call))
        if answer.error_code == UNSUPPORTED_VERSION:
            call = wire.encode(wire.API_VERSIONS, 0, wire.API_VERSIONS.request(version=0))
            answer = call.decode(self.peer().ask(call))
        wire.refuse_errors(wire.API_VERSIONS, answer)
        offered = {item.api_key: (item.min_version, item.max_version) for item in answer.api_keys}
        agreed = {api.name: _highest(api, offered.get(api.key), caps.get(api.name)) for api in wire.APIS}
        return {name: version for name, version in agreed.items() if version is not None}

    # topics

    def ensure_topic(self, name: str, partitions: int) -> Topic:
        """Create the topic where it is missing. Raises Unprepared when it has fewer partitions."""
        if self.dialect.offers(wire.CREATE_TOPICS):
            self.until_good(lambda: self._create_topic(name, partitions), f"creating topic {name}")
        return self.until_good(lambda: self._describe_topic(name, partitions), f"Metadata of topic {name}")

    def _create_topic(self, name: str, partitions: int) -> None:
        call = self.dialect.create_topic(name, partitions)
        message = call.decode(self.peer().ask(call))
        if wire.error_codes(message) != {TOPIC_ALREADY_EXISTS}:
            wire.refuse_errors(wire.CREATE_TOPICS, message)

    def _describe_topic(self, name: str, partitions: int) -> Topic:
        call = self.dialect.describe_topic(name)
        message = call.decode_good(self.peer().ask(call))
        found = [topic for topic in message.topics if topic.name == name]
        if len(found) != 1:
            raise BadReply(f"Metadata: asked for topic {name}, got {len(found)}")
        topic_id = found[0].topic_id if self.dialect.version(wire.METADATA) >= 10 else None
        if len(found[0].partitions) < partitions:
            raise BadReply(f"topic {name} has {len(found[0].partitions)} partitions, {partitions} are needed")
        return Topic(name, topic_id, partitions)

    # coordinators

    def look_up_coordinators(self, groups: Sequence[str]) -> dict[str, Address]:
        """The coordinator's address by group, each asked for once. Raises Unprepared."""
        unknown = [group for group in groups if group not in self._found]
        for start in range(0, len(unknown), GROUPS_PER_REQUEST):
            part = unknown[start : start + GROUPS_PER_REQUEST]
            self._found |= self.until_good(partial(self._find, part), "FindCoordinator")
        return {group: self._found[group] for group in groups}

    def _find(self, groups: Sequence[str]) -> dict[str, Address]:
        calls = self.dialect.find_coordinators(groups)
        messages = [call.decode_good(self.peer().ask(call)) for call in calls]
        if self.dialect.version(wire.FIND_COORDINATOR) < 4:
            return {g: Address(m.host, m.port) for g, m in zip(groups, messages, strict=True)}
        found = {item.key: Address(item.host, item.port) for item in messages[0].coordinators}
        if found.keys() != set(groups):
            raise BadReply(f"FindCoordinator: asked for {len(groups)} groups, got {len(found)}")
        return found

    def by_coordinator(self, groups: Sequence[str]) -> dict[Address, list[str]]:
        """The groups under their coordinator's address."""
        shared: dict[Address, list[str]] = defaultdict(list)
        for group, address in self.look_up_coordinators(groups).items():
            shared[address].append(group)
        return dict(shared)

    def wait_until_served(self, groups: Sequence[str], topic: Topic) -> None:
        """Return once an OffsetFetch of every group is answered without an error. Raises Unprepared."""
        waiting = list(groups)

        def remaining() -> None:
            nonlocal waiting
            for address, members in self.by_coordinator(waiting).items():
                calls = [self.dialect.fetch(topic, group, [0]) for group in members]
                for group, reply in zip(members, list(self.peer(address).pipeline(calls)), strict=True):
                    try:
                        self.dialect.fetched(topic, group, reply)
                    except BadReply as error:
                        # Another node may lead the group's partition by now.
                        del self._found[group]
                        failed = error
                        if not error.transient:
                            raise
                    else:
                        waiting.remove(group)
            if waiting:
                raise failed

        self.until_good(remaining, "waiting for the coordinator")

    # offsets

    def commit_all(self, topic: Topic, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Commit offsets by group and partition without membership. Raises Unprepared."""
        for group, by_partition in offsets.items():
            attempt = partial(self._commit, topic, group, by_partition)
            self.until_good(attempt, f"committing for {group}")

    def _commit(self, topic: Topic, group: str, offsets: Mapping[int, int]) -> None:
        call = self.dialect.commit(topic, nobody(group), offsets)
        reply = self.peer(self.look_up_coordinators([group])[group]).ask(call)
        self.dialect.check_commit(topic, list(offsets), reply)

    # members

    def join_all(self, topic: Topic, groups: Sequence[str]) -> list[Member]:
        """Make one stable member in each group. Raises Unprepared."""
        members: list[Member] = []
        try:
            for start in range(0, len(groups), JOINS_AT_ONCE):
                members += self._join_at_once(topic, groups[start : start + JOINS_AT_ONCE])
        except (OSError, BadReply) as error:
            raise Unprepared(f"joining: {error}") from error
        return members

    def _join_at_once(self, topic: Topic, groups: Sequence[str]) -> list[Member]:
        dialect, addresses = self.dialect, self.look_up_coordinators(groups)
        with contextlib.ExitStack() as stack:
            peers = [stack.enter_context(self.connect(addresses[group])) for group in groups]
            first = [dialect.join(topic, group, "") for group in groups]
            answers = _ask_all(peers, first, allow={MEMBER_ID_REQUIRED})
            again = [dialect.join(topic, g, a.member_id) for g, a in zip(groups, answers, strict=True)]
            if any(
                answer.error_code for answer in answers
            ):  # below JoinGroup v4 the first one already counts
                answers = _ask_all(peers, again)
            members = [Member(g, a.member_id, a.generation_id) for g, a in zip(groups, answers, strict=True)]
            _ask_all(peers, [dialect.sync(topic, member) for member in members])
        return members

    def leave_all(self, members: Sequence[Member]) -> None:
        """Take members out of their groups. Raises OSError and BadReply."""
        for member in members:
            call = self.dialect.leave(member)
            call.decode_good(self.peer(self._found[member.group]).ask(call))

    def delete_groups(self, groups: Sequence[str]) -> None:
        """Delete groups with their offsets, where the server offers that. Raises OSError and BadReply."""
        if not self.dialect.offers(wire.DELETE_GROUPS):
            return
        for address, members in self.by_coordinator(groups).items():
            for start in range(0, len(members), GROUPS_PER_REQUEST):
                call = self.dialect.delete_groups(members[start : start + GROUPS_PER_REQUEST])
                call.decode_good(self.peer(address).ask(call))


def _highest(api: Api, offered: tuple[int, int] | None, cap: int | None) -> int | None:
    if offered is None:
        return None
    lowest, highest = offered
    best = min(highest, int(api.request.max_version), highest if cap is None else cap)
    return best if best >= lowest else None


def _ask_all(peers: Sequence[Peer], calls: Sequence[Call], allow: set[int] | None = None) -> list[Any]:
    """Ask each peer its own question at the same time; error codes are refused except those in `allow`."""
    for peer, call in zip(peers, calls, strict=True):
        peer.send(call)
    messages = [call.decode(peer.receive()) for peer, call in zip(peers, calls, strict=True)]
    for call, message in zip(calls, messages, strict=True):
        if not wire.error_codes(message) <= (allow or set()):
            wire.refuse_errors(call.api, message)
    return messages
