# SPDX-License-Identifier: Apache-2.0
"""The attackers, and the member of a group whose heartbeats show what they do to others."""

import socket
import threading
import time
from collections.abc import Sequence
from typing import Final

from bench.attack.frames import request
from bench.attack.node import connect, read_frame
from protocol import hot
from protocol.apis import ApiKey
from protocol.message_codecs import find_message_codec
from protocol.newtypes import GroupId

HEARTBEAT_EVERY_S: Final = 0.005
ERROR_CODE: Final = slice(8, 10)
"""Of an answer to a Heartbeat of version 3, behind the correlation id and the throttle time."""
GOOD: Final = b"\0\0"


class Attackers:
    """Connections, each in a thread, that send the same requests again and again and read what comes."""

    def __init__(self, address: tuple[str, int], frames: Sequence[bytes], connections: int) -> None:
        self._address = address
        self._frames = frames
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(connections)]
        self.answers = 0
        self.answer_bytes_max = 0
        self.closed = 0

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Send no more; what was sent is not waited for."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with connect(self._address) as sock:
                    while not self._stop.is_set():
                        self._round(sock)
            except OSError:
                self.closed += 1

    def _round(self, sock: socket.socket) -> None:
        for frame in self._frames:
            sock.sendall(frame)
        for _ in self._frames:
            size = len(read_frame(sock))
            self.answers += 1
            self.answer_bytes_max = max(self.answer_bytes_max, size)


class Member:
    """The only member of the group `probe`."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = connect(address)
        join = hot.JoinGroupRequest(
            group_id=GroupId("probe"),
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=[hot.JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        joined = self._ask(ApiKey.JOIN_GROUP, 3, join)
        self.error_code = int(joined.error_code)
        self._heartbeat = request(
            ApiKey.HEARTBEAT,
            3,
            hot.HeartbeatRequest(GroupId("probe"), joined.generation_id, joined.member_id),
        )
        sync = hot.SyncGroupRequest(
            GroupId("probe"),
            joined.generation_id,
            joined.member_id,
            assignments=[hot.SyncGroupRequestAssignment(joined.member_id, b"")],
        )
        self._ask(ApiKey.SYNC_GROUP, 3, sync)
        self.latencies_s: list[float] = []
        self.refused = 0

    def _ask(self, api: ApiKey, version: int, message: object) -> hot.JoinGroupResponse:
        self._socket.sendall(request(api, version, message))
        answer: hot.JoinGroupResponse = find_message_codec(api, version).decode_response(
            read_frame(self._socket), 4
        )
        return answer

    def beat_for(self, seconds: float) -> None:
        """Heartbeat for so long, and note how long each one took."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            began = time.perf_counter()
            self._socket.sendall(self._heartbeat)
            answer = read_frame(self._socket)
            self.latencies_s.append(time.perf_counter() - began)
            self.refused += answer[ERROR_CODE] != GOOD
            time.sleep(HEARTBEAT_EVERY_S)

    def close(self) -> None:
        """Leave without a word."""
        self._socket.close()
