# SPDX-License-Identifier: Apache-2.0
"""Lines between two processes of one machine: what is written on one end arrives at the other, soon and in order."""

import asyncio

from tests.simulation.loop import Process, SimulatedLoop


class Line(asyncio.Transport):
    """One end, and the process that has it."""

    def __init__(self, loop: SimulatedLoop, process: Process, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._loop = loop
        self._process = process
        self._protocol = protocol
        self.other: Line
        self._is_open = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_open:
            self.other.soon_arrives(bytes(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return not self._is_open

    def close(self) -> None:
        """Both ends hear that it is over, once what was written before has arrived."""
        self.soon_lost()
        self.other.soon_lost()

    def soon_arrives(self, data: bytes) -> None:
        """Hand bytes to the process at this end when it next runs."""
        self._loop.call_soon(self._arrived, data, context=self._process.context)

    def soon_lost(self) -> None:
        """Tell the process at this end that it is over."""
        self._loop.call_soon(self._lost, context=self._process.context)

    def _arrived(self, data: bytes) -> None:
        if self._is_open:
            self._protocol.data_received(data)

    def _lost(self) -> None:
        if self._is_open:
            self._is_open = False
            self._protocol.connection_lost(None)


def connect(
    loop: SimulatedLoop,
    one: tuple[Process, asyncio.Protocol],
    another: tuple[Process, asyncio.Protocol],
) -> tuple[Line, Line]:
    """Connect the protocols of two processes, the first of which runs now; returns their ends."""
    ends = Line(loop, *one), Line(loop, *another)
    ends[0].other, ends[1].other = ends[1], ends[0]
    one[1].connection_made(ends[0])
    loop.call_soon(another[1].connection_made, ends[1], context=another[0].context)
    return ends
