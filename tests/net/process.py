# SPDX-License-Identifier: Apache-2.0
"""Clients of a real process: one that behaves and keeps watch, and sockets that send whatever a test likes."""

import socket
import struct
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from tests.net import requests
from tests.support.service import Service

TIMEOUT_S = 120.0


class Peer:
    """A blocking socket to the service."""

    def __init__(self, service: Service, timeout_s: float = TIMEOUT_S) -> None:
        self._socket = socket.create_connection(("127.0.0.1", service.port), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, *frames: bytes) -> None:
        """Send everything. Raises OSError when the server has closed."""
        self._socket.sendall(b"".join(frames))

    def send_what_is_taken(self, data: bytes, timeout_s: float) -> int:
        """Send until nothing more is taken for so long; returns how many bytes were."""
        self._socket.settimeout(timeout_s)
        sent = 0
        with suppress(TimeoutError):
            while sent < len(data):
                sent += self._socket.send(data[sent : sent + (1 << 20)])
        self._socket.settimeout(TIMEOUT_S)
        return sent

    def receive(self) -> bytes:
        """The next answer. Raises ConnectionError when the server closes."""
        (length,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(length)

    def ask(self, frame: bytes) -> bytes:
        self.send(frame)
        return self.receive()

    def is_closed(self) -> bool:
        """Whether the server has closed, without an answer; waits for either."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionError:
            return True

    def has_been_closed(self) -> bool:
        """Whether the server has closed by now, nothing being on its way."""
        self._socket.setblocking(False)
        try:
            return self._socket.recv(1) == b""
        except BlockingIOError:
            return False
        finally:
            self._socket.settimeout(TIMEOUT_S)

    def shrink_receive_buffer(self) -> None:
        """Let little wait on the way to us."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            some = self._socket.recv(count - len(data))
            if not some:
                raise ConnectionError("the server closed the connection")
            data += some
        return bytes(data)


class Watch(threading.Thread):
    """A member of a group on a connection of its own: heartbeats and commits, each of which has to succeed."""

    _numbers = count(1)

    def __init__(self, service: Service) -> None:
        super().__init__(daemon=True)
        self._peer = Peer(service)
        group = self._group = f"healthy-{next(self._numbers)}"
        self._stop_asked = threading.Event()
        self._failure: BaseException | None = None
        self.rounds = 0
        joined = requests.answer(ApiKey.JOIN_GROUP, 3, self._peer.ask(requests.join(group, version=3)))
        assert joined.error_code == ErrorCode.NONE
        self._member_id, self._generation = joined.member_id, joined.generation_id
        assignment = {self._member_id: b"all"}
        sync = requests.sync(group, self._member_id, self._generation, assignments=assignment)
        assert requests.answer(ApiKey.SYNC_GROUP, 4, self._peer.ask(sync)).error_code == ErrorCode.NONE

    def __enter__(self) -> "Watch":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_asked.set()
        self.join(2 * TIMEOUT_S)
        with suppress(OSError):
            self._peer.__exit__()
        if self._failure is not None:
            raise AssertionError(f"a healthy client was disturbed in round {self.rounds}") from self._failure
        assert not self.is_alive(), "a healthy client is stuck"
        assert self.rounds > 0

    def run(self) -> None:
        try:
            while not self._stop_asked.is_set():
                self._round()
                self.rounds += 1
                self._stop_asked.wait(0.002)
        except BaseException as failure:  # noqa: BLE001 - whatever it is, the test's own thread reports it
            self._failure = failure

    def _round(self) -> None:
        self._peer.send(
            requests.heartbeat(self._group, self._member_id, self._generation, 1),
            requests.commit(
                self._group, {0: self.rounds}, 2, member_id=self._member_id, generation=self._generation
            ),
            requests.fetch_offsets(self._group, 3),
        )
        beat = requests.answer(ApiKey.HEARTBEAT, 4, self._peer.receive())
        assert beat.error_code == ErrorCode.NONE, beat
        (topic,) = requests.answer(ApiKey.OFFSET_COMMIT, 8, self._peer.receive()).topics
        assert topic.partitions[0].error_code == ErrorCode.NONE, topic
        (topic,) = requests.answer(ApiKey.OFFSET_FETCH, 7, self._peer.receive()).topics
        assert topic.partitions[0].committed_offset == self.rounds


def resident_kib(service: Service) -> int | None:
    """What the process holds in memory now; None where the system does not say (only Linux does)."""
    status = Path(f"/proc/{service.pid}/status")
    if not status.exists():
        return None
    for line in status.read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return None
