# SPDX-License-Identifier: Apache-2.0
"""A client that closes its connection behind requests whose answers it does not wait for."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from kafka.protocol.admin.groups import DeleteGroupsRequest
from kafka.protocol.consumer.group import JoinGroupRequest, LeaveGroupRequest

from tests.support import raw
from tests.support.raw import RawConnection
from tests.support.waiting import wait_until

PARTITIONS: Final = 100
INSTANCE: Final = "i"
BEFORE: Final = 1
"""The offset that is committed where something is deleted."""
AFTER: Final = 2


@dataclass
class Leaver:
    """Groups of one coordinator, and one row of requests for them.

    `reset` closes with RST. `known`: something was asked of all groups on its connection before, so that a
    gateway knows its permissions and has opened all connections.
    """

    bootstrap: str
    topic: str
    tag: str
    reset: bool
    known: bool
    address: str = field(init=False)
    """Of the coordinator."""
    groups: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        names = self._of_one_coordinator()
        self.groups = {kind: next(names) for kind in ("joins", "long", "short", "deletes", "goes")}

    def _of_one_coordinator(self) -> Iterator[str]:
        first = f"{self.tag}-0"
        found = raw.find_coordinator(self.bootstrap, first)
        self.address = f"{found.host}:{found.port}"
        yield first
        for number in range(1, 1_000):
            name = f"{self.tag}-{number}"
            if raw.find_coordinator(self.bootstrap, name).port == found.port:
                yield name

    def leave(self) -> None:
        """Do it."""
        with RawConnection(self.address) as connection:
            self._prepare(connection)
            if self.known:
                self._send_row(connection)
        if not self.known:
            with RawConnection(self.address) as connection:
                self._send_row(connection)

    def _prepare(self, connection: RawConnection) -> None:
        everything = dict.fromkeys(range(PARTITIONS), BEFORE)
        for kind in ("deletes", "goes"):
            commit = raw.standalone_commit(self.groups[kind], self.topic, everything)
            answer = connection.call(commit, 8)
            assert {part.error_code for part in answer.topics[0].partitions} == {raw.NONE}
        for kind in ("joins", "long", "short"):
            assert raw.ask_offsets(connection, self.groups[kind]).error_code == raw.NONE

    def _send_row(self, connection: RawConnection) -> None:
        for request, version in self._row():
            connection.send(request, version)
        if self.reset:
            connection.reset()

    def _row(self) -> Iterator[tuple[Any, int]]:
        groups, everything = self.groups, dict.fromkeys(range(PARTITIONS), AFTER)
        yield _join(groups["joins"]), 5  # waits for others
        yield raw.standalone_commit(groups["long"], self.topic, everything, metadata="m" * 400), 8
        yield raw.standalone_commit(groups["short"], self.topic, everything), 8
        yield raw.offset_delete(groups["deletes"], self.topic, range(PARTITIONS)), 0
        yield DeleteGroupsRequest(groups_names=[groups["goes"]]), 2
        yield _leave(groups["joins"]), 4

    def seen(self) -> dict[str, int]:
        """How many members there are, and of each other group how many offsets that were committed for it."""
        committed = {
            kind: list(raw.fetch_offsets(self.address, self.groups[kind]).values())
            for kind in ("long", "short", "deletes", "goes")
        }
        return {
            "joins": len(raw.describe_group(self.address, self.groups["joins"]).members),
            **{kind: committed[kind].count(AFTER) for kind in ("long", "short")},
            **{kind: committed[kind].count(BEFORE) for kind in ("deletes", "goes")},
        }

    def wait_until_all_is_carried_out(self) -> None:
        """Return once it is."""
        wait_until(lambda: self.seen() == CARRIED_OUT, what=lambda: f"all to be carried out: {self.seen()}")


CARRIED_OUT: Final = {"joins": 0, "long": PARTITIONS, "short": PARTITIONS, "deletes": 0, "goes": 0}


def check_that_all_is_carried_out(bootstrap: str, topic: str, tag: str) -> None:
    """With FIN all of the row is carried out; with RST of each request all or nothing."""
    for known in (True, False):
        named = f"{tag}-{'known' if known else 'new'}"
        leaver = Leaver(bootstrap, topic, f"{named}-fin", reset=False, known=known)
        leaver.leave()
        leaver.wait_until_all_is_carried_out()
        for number in range(5):
            leaver = Leaver(bootstrap, topic, f"{named}-rst-{number}", reset=True, known=known)
            leaver.leave()
            seen = leaver.seen()
            assert {count for kind, count in seen.items() if kind != "joins"} <= {0, PARTITIONS}, seen


def _join(group: str) -> Any:
    kind = JoinGroupRequest.JoinGroupRequestProtocol
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=300_000,
        rebalance_timeout_ms=300_000,
        member_id="",
        group_instance_id=INSTANCE,
        protocol_type="consumer",
        protocols=[kind(name="range", metadata=b"")],
    )


def _leave(group: str) -> Any:
    kind = LeaveGroupRequest.MemberIdentity
    return LeaveGroupRequest(group_id=group, members=[kind(member_id="", group_instance_id=INSTANCE)])
