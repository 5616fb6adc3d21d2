# SPDX-License-Identifier: Apache-2.0
"""The attacked node: a watched one of any tree and any interpreter, filled with groups and topics."""

import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.attack.frames import TOPIC_PARTITIONS, Size, names, request
from bench.servers import tied_to_us
from bench.watched import WatchedNode
from protocol import hot
from protocol.apis import ApiKey
from protocol.kafka_python_messages import CreateTopicsRequest
from protocol.newtypes import GroupId, Offset

TOPICS_PER_REQUEST: Final = 500
WIDE_PARTITIONS: Final = 10_000
WIDE_STEP: Final = 2_000
IN_FLIGHT: Final = 200
LAUNCH: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); from bench.watched import main; main(sys.argv[1:])"
)
"""What is installed comes before the tree, so an interpreter with a compiled build runs that."""
ROOM: Final = {"group.initial.rebalance.delay.ms": "0", "log.level": "warning"}


class AttackedNode(WatchedNode):
    """Such a node as a child process."""

    def __init__(self, work: Path, python: str, tree: Path, loop: str, settings: dict[str, str]) -> None:
        super().__init__("attacked", work, {**ROOM, **settings})
        self.loop = loop
        self._python = python
        self._tree = tree

    def command(self) -> list[str]:
        """The watched node of the tree, by the interpreter that was chosen."""
        *_, file = super().command()[:4]
        chosen = super().command()[4:]
        return tied_to_us([self._python, "-P", "-c", LAUNCH, str(self._tree), file, *chosen])

    def peak_rss_bytes(self) -> int:
        """The most memory that the process has had."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        return 0


def connect(address: tuple[str, int]) -> socket.socket:
    """A connection whose reads end after half a minute."""
    return socket.create_connection(address, timeout=30)


def read_frame(sock: socket.socket) -> bytes:
    """One answer. Raises ConnectionError where there is none."""
    (length,) = struct.unpack(">i", read(sock, 4))
    return read(sock, length)


def read(sock: socket.socket, count: int) -> bytes:
    """So many bytes. Raises ConnectionError when the peer has closed."""
    parts = []
    while count:
        part = sock.recv(min(count, 1 << 20))
        if not part:
            raise ConnectionError("closed")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def fill(address: tuple[str, int], size: Size) -> None:
    """Make the groups and topics."""
    with connect(address) as sock:
        _exchange(sock, _topics(size))
        _exchange(sock, _commits(size))


def _topics(size: Size) -> Iterator[bytes]:
    yield _create(["wide"], WIDE_PARTITIONS)
    wanted = names("t", size.topics)
    for start in range(0, len(wanted), TOPICS_PER_REQUEST):
        yield _create(wanted[start : start + TOPICS_PER_REQUEST], TOPIC_PARTITIONS)


def _create(topics: Sequence[str], partitions: int) -> bytes:
    kind = CreateTopicsRequest.CreatableTopic
    wanted = [
        kind(
            version=2, name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
        )
        for name in topics
    ]
    message = CreateTopicsRequest(version=2, topics=wanted, timeout_ms=30_000, validate_only=False)
    return request(ApiKey.CREATE_TOPICS, 2, message)


def _commits(size: Size) -> Iterator[bytes]:
    for start in range(0, WIDE_PARTITIONS, WIDE_STEP):
        yield commit("big", "wide", range(start, start + WIDE_STEP))
    for number in range(size.groups):
        yield commit(f"g{number}", f"t{number % max(size.topics, 1)}", range(1))


def commit(group: str, topic: str, partitions: Sequence[int]) -> bytes:
    """An OffsetCommit from outside of any membership."""
    rows = [hot.OffsetCommitRequestPartition(index, Offset(index)) for index in partitions]
    topics = [hot.OffsetCommitRequestTopic(name=topic, partitions=rows)]
    return request(ApiKey.OFFSET_COMMIT, 8, hot.OffsetCommitRequest(group_id=GroupId(group), topics=topics))


def _exchange(sock: socket.socket, frames: Iterator[bytes]) -> None:
    owed = 0
    for frame in frames:
        sock.sendall(frame)
        owed += 1
        if owed == IN_FLIGHT:
            read_frame(sock)
            owed -= 1
    for _ in range(owed):
        read_frame(sock)
