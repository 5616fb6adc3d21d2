# SPDX-License-Identifier: Apache-2.0
"""Long work of a coroutine, done in steps with a turn of the event loop after each."""

import asyncio
from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


async def run_step_per_turn(steps: Generator[None, None, T]) -> T:
    """Take all steps, each in a turn of its own, and return their result. Raises what they raise."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
        await asyncio.sleep(0)
