# SPDX-License-Identifier: Apache-2.0
"""Making a node keep things: `python -m bench.attack.keeping [SCENARIO ...] [--seconds N] [--python PATH]`.

Each scenario starts a node, attacks it over one or more connections, and prints how its memory grew, how many requests
were taken and refused, and the longest time that a well-behaved member waited for a heartbeat meanwhile.
"""

import argparse
import json
import os
import signal
import socket
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from bench.attack.background import Background
from bench.procstat import tree_rss_bytes
from bench.servers import Groupkeeper
from protocol import hot
from protocol.apis import ApiKey
from protocol.client_frames import decode_answer, encode_request
from protocol.headers import RequestHeader
from protocol.kafka_python_messages import CreateTopicsRequest
from protocol.message_codecs import find_message_codec
from protocol.newtypes import GroupId, MemberId, Offset

TOPIC: Final = "attacked"
PIPELINED: Final = 200
"""So many requests are sent before their answers are read."""
FIRST_HEARTBEATS_S: Final = 0.2


class Peer:
    """A blocking connection."""

    def __init__(self, server: Groupkeeper) -> None:
        self._socket = socket.create_connection(server.address, timeout=60)
        self._file = self._socket.makefile("rb")

    def send(self, *frames: bytes) -> None:
        self._socket.sendall(b"".join(frames))

    def receive(self) -> bytes:
        """The next answer. Raises ConnectionError when the node has closed."""
        head = self._file.read(4)
        if len(head) < 4:
            raise ConnectionError("closed by the node")
        return self._file.read(struct.unpack(">i", head)[0])

    def ask(self, api: ApiKey, version: int, message: Any) -> Any:
        self.send(frame(api, version, message))
        return answer(api, version, self.receive())

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def frame(api: ApiKey, version: int, message: Any) -> bytes:
    """A whole request."""
    return encode_request(find_message_codec(api, version), RequestHeader(api, version, 1, "attack"), message)


def answer(api: ApiKey, version: int, data: bytes) -> Any:
    """A whole response."""
    return decode_answer(find_message_codec(api, version), api, data)


class Member(Background):
    """A group of one that sends heartbeats as fast as they are answered, and keeps the longest wait."""

    def __init__(self, server: Groupkeeper, group: str = "well-behaved", session_ms: int = 10_000) -> None:
        super().__init__()
        self.peer = Peer(server)
        self.longest_ms = 0.0
        self.errors: Counter[int] = Counter()
        joined = self.peer.ask(ApiKey.JOIN_GROUP, 3, join(group, session_ms=session_ms))
        sync = hot.SyncGroupRequest(
            group_id=GroupId(group),
            member_id=joined.member_id,
            generation_id=joined.generation_id,
            assignments=[hot.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")],
        )
        self.peer.ask(ApiKey.SYNC_GROUP, 3, sync)
        beat = hot.HeartbeatRequest(GroupId(group), joined.generation_id, joined.member_id, None)
        self.heartbeat = frame(ApiKey.HEARTBEAT, 3, beat)

    def run(self) -> None:
        while not self.over.wait(0.01):
            began = time.perf_counter()
            self.peer.send(self.heartbeat)
            self.errors[answer(ApiKey.HEARTBEAT, 3, self.peer.receive()).error_code] += 1
            self.longest_ms = max(self.longest_ms, (time.perf_counter() - began) * 1e3)

    def end(self) -> dict[str, Any]:
        self.stop()
        return {"heartbeat_ms_max": round(self.longest_ms, 1), "heartbeat_errors": dict(self.errors)}


def join(
    group: str, member_id: str = "", *, metadata: bytes = b"m", session_ms: int = 10_000
) -> hot.JoinGroupRequest:
    protocols = [hot.JoinGroupRequestProtocol(name="range", metadata=metadata)]
    return hot.JoinGroupRequest(
        group_id=GroupId(group),
        member_id=MemberId(member_id),
        protocol_type="consumer",
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=60_000,
        protocols=protocols,
    )


def commit(group: str, partitions: int = 1, metadata: str = "") -> hot.OffsetCommitRequest:
    offsets = [
        hot.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=Offset(1), committed_metadata=metadata
        )
        for index in range(partitions)
    ]
    topics = [hot.OffsetCommitRequestTopic(name=TOPIC, partitions=offsets)]
    return hot.OffsetCommitRequest(group_id=GroupId(group), generation_id_or_member_epoch=-1, topics=topics)


def flood(
    server: Groupkeeper, seconds: float, api: ApiKey, version: int, message: Callable[[str], Any]
) -> Counter[int]:
    """Send `message` of ever new names, many at a time; returns how often each error was answered."""
    peer = Peer(server)
    name = "~" * 12
    template = frame(api, version, message(name))
    errors: Counter[int] = Counter()
    number = 0
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        frames = []
        for _ in range(PIPELINED):
            number += 1
            frames.append(template.replace(name.encode(), b"%012d" % number))
        peer.send(*frames)
        for _ in frames:
            told = answer(api, version, peer.receive())
            parts = [part for topic in told.topics for part in topic.partitions] if api == 8 else [told]
            errors.update(part.error_code for part in parts)
    peer.close()
    return errors


# --- scenarios ---


def groups(server: Groupkeeper, seconds: float) -> Mapping[str, Any]:
    """A new group with each commit."""
    return {"errors": flood(server, seconds, ApiKey.OFFSET_COMMIT, 7, commit)}


def long_ids(server: Groupkeeper, seconds: float) -> Mapping[str, Any]:
    """The same with ids of 30 KB."""
    return {
        "errors": flood(server, seconds, ApiKey.OFFSET_COMMIT, 7, lambda name: commit(name + "x" * 30_000))
    }


def metadata(server: Groupkeeper, seconds: float) -> Mapping[str, Any]:
    """100 offsets with 4 KB of metadata each in every new group."""
    text = "x" * 4_000
    return {"errors": flood(server, seconds, ApiKey.OFFSET_COMMIT, 7, lambda name: commit(name, 100, text))}


def first_joins(server: Groupkeeper, seconds: float) -> Mapping[str, Any]:
    """A first join in one group after the other, and never a second."""
    return {
        "errors": flood(server, seconds, ApiKey.JOIN_GROUP, 5, lambda name: join(name, session_ms=1_800_000))
    }


def big_members(server: Groupkeeper, seconds: float) -> Mapping[str, Any]:
    """Members with 900 KB of metadata each, all in one group, until nothing more is taken or the time is over."""
    codes: Counter[int] = Counter()
    peers: list[Peer] = []
    ends = time.monotonic() + seconds
    while time.monotonic() < ends and len(peers) < 1_000:
        peer = Peer(server)
        peers.append(peer)
        first = peer.ask(ApiKey.JOIN_GROUP, 5, join("big", metadata=bytes(900_000)))
        codes[first.error_code] += 1
        peer.send(frame(ApiKey.JOIN_GROUP, 5, join("big", first.member_id, metadata=bytes(900_000))))
    time.sleep(1)
    for peer in peers:
        peer._socket.settimeout(0.01)
        try:
            codes[answer(ApiKey.JOIN_GROUP, 5, peer.receive()).error_code] += 1
        except (TimeoutError, ConnectionError):
            codes[-2] += 1  # waits in its rebalance
        peer.close()
    return {"errors": codes}


def deaf(server: Groupkeeper, seconds: float) -> Mapping[str, Any]:
    """60 connections that ask for 40 MB each and never read."""
    writer = Peer(server)
    for number in range(100):
        writer.ask(ApiKey.OFFSET_COMMIT, 7, commit(f"answer-{number:06}", 100, "x" * 4_000))
    wanted = [
        hot.OffsetFetchRequestGroup(group_id=GroupId(f"answer-{number:06}"), topics=None)
        for number in range(100)
    ]
    asked = frame(ApiKey.OFFSET_FETCH, 8, hot.OffsetFetchRequest(groups=wanted))
    peers = [Peer(server) for _ in range(60)]
    for peer in peers:
        peer.send(asked)
    most = 0
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        most = max(most, tree_rss_bytes(server.pid))
        time.sleep(0.05)
    for peer in peers:
        peer.close()
    return {"rss_mb_max": most >> 20, "asked_bytes": len(asked)}


def pause(server: Groupkeeper, seconds: float) -> Mapping[str, Any]:
    """180 members with sessions of 6 s; the process is stopped for 9 s, and their heartbeats wait in the sockets."""
    members = [Member(server, f"paused-{number}", session_ms=6_000) for number in range(180)]
    for member in members:
        member.peer.send(member.heartbeat)
    for member in members:
        member.peer.receive()
    os.kill(server.pid, signal.SIGSTOP)
    for member in members:
        member.peer.send(member.heartbeat)
    time.sleep(9)
    os.kill(server.pid, signal.SIGCONT)
    codes = Counter(answer(ApiKey.HEARTBEAT, 3, member.peer.receive()).error_code for member in members)
    return {"errors": codes}


SCENARIOS: Final = {
    "groups": groups,
    "long-ids": long_ids,
    "metadata": metadata,
    "first-joins": first_joins,
    "big-members": big_members,
    "deaf": deaf,
    "pause": pause,
}


class Installed(Groupkeeper):
    """The command that was installed beside another interpreter."""

    python = ""

    def command(self) -> list[str]:
        """`groupkeeper serve …` of that installation, or what is started by default."""
        usual = super().command()
        if not self.python:
            return usual
        return [
            self.python,
            "-I",
            str(Path(self.python).with_name("groupkeeper")),
            *usual[usual.index("serve") :],
        ]


def play(name: str, seconds: float) -> dict[str, Any]:
    """One scenario on a node of its own."""
    with (
        tempfile.TemporaryDirectory() as work,
        Installed("attacked", Path(work), {"log.flush": "os"}) as server,
    ):
        server.start()
        topic = CreateTopicsRequest.CreatableTopic(
            name=TOPIC, num_partitions=100, replication_factor=1, assignments=[], configs=[]
        )
        Peer(server).ask(
            ApiKey.CREATE_TOPICS,
            4,
            CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=False),
        )
        watching = Member(server)
        if name != "pause":
            watching.start()
            time.sleep(FIRST_HEARTBEATS_S)
        before = tree_rss_bytes(server.pid)
        found = dict(SCENARIOS[name](server, seconds))
        found["rss_mb_before"] = before >> 20
        found["rss_mb_after"] = tree_rss_bytes(server.pid) >> 20
        if name != "pause":
            found |= watching.end()
        return found


def main() -> int:
    """Play what is named, or everything; one line of JSON each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenario", nargs="*", choices=[*SCENARIOS, []], help=", ".join(SCENARIOS))
    parser.add_argument("--seconds", type=float, default=10.0, help="for how long each attack goes on")
    parser.add_argument("--python", default="", help="attack the groupkeeper beside this interpreter")
    options = parser.parse_args()
    Installed.python = options.python
    for name in options.scenario or SCENARIOS:
        print(json.dumps({"scenario": name, **play(name, options.seconds)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
