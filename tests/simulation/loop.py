# SPDX-License-Identifier: Apache-2.0
"""An event loop whose time passes only when nothing is left to do: asyncio's own, on a selector without sockets."""

import asyncio
import math
import selectors
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.network import Network

NS = 1_000_000_000


class Idle(RuntimeError):
    """Nothing will ever happen again."""


class _NoSockets(selectors.BaseSelector):
    """Waits for nothing; waiting for a time moves the clock there."""

    def __init__(self) -> None:
        self.now_ns = 0

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return selectors.SelectorKey(fileobj, 0, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return selectors.SelectorKey(fileobj, 0, 0, None)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Idle
        if timeout > 0:
            self.now_ns += math.ceil(timeout * NS)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return {}

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        raise KeyError(fileobj)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """`time()` is simulated; servers are those of a `Network`; executors run at once."""

    def __init__(self) -> None:
        self._ports = _NoSockets()
        self.network: Network | None = None
        super().__init__(self._ports)

    @property
    def now_ns(self) -> int:
        """Simulated nanoseconds since the start."""
        return self._ports.now_ns

    def hold(self, duration_ns: int) -> None:
        """Let time pass while nothing runs, as when the process is stopped."""
        self._ports.now_ns += duration_ns

    def time(self) -> float:
        return self._ports.now_ns / NS

    async def create_server(self, protocol_factory: Any, *_: Any, sock: Any = None, **__: Any) -> Any:
        assert self.network is not None, "no network"
        return self.network.listen(sock, protocol_factory)

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        done: asyncio.Future[Any] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - as an executor does
            done.set_exception(error)
        return done
