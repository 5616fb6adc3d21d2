# SPDX-License-Identifier: Apache-2.0
"""Sessions that never ended: one timer's call failed, and those due after it were forgotten until the next new one."""

import asyncio

from coordinator.runtime.clock import SystemClock
from coordinator.runtime.timers import Timers


async def test_a_call_that_fails_keeps_no_other_from_being_made() -> None:
    loop = asyncio.get_running_loop()
    timers = Timers(loop, SystemClock())
    made: list[str] = []
    last = loop.create_future()

    def fail(_: object) -> None:
        raise RuntimeError("a bug")

    timers.call_after(0, fail)
    timers.call_after(0, made.append, "due with it")
    timers.call_after(1, lambda _: last.set_result(None))
    await asyncio.wait_for(last, 120)
    assert made == ["due with it"]
    timers.close()
