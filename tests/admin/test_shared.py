# SPDX-License-Identifier: Apache-2.0
"""Those who ask the same at the same time share the work, and different work is done one after the other."""

import asyncio
from functools import partial

import pytest

from coordinator.admin.shared_work import SharedWork, SharedWorkFailed
from tests.support.idle import idle


class Work:
    """Work that counts how often it is done, and how much of it at once."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.done: list[int] = []
        self.at_once = 0
        self.most_at_once = 0

    async def run(self, number: int) -> int:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self.go_on.wait()
        await asyncio.sleep(0)
        self.at_once -= 1
        self.done.append(number)
        return number * number


async def test_who_asks_the_same_at_the_same_time_shares_the_work() -> None:
    work = Work()
    shared: SharedWork[int, int] = SharedWork("squares")
    asked = [asyncio.create_task(shared.get(3, lambda: work.run(3))) for _ in range(50)]
    await idle()
    work.go_on.set()
    assert await asyncio.gather(*asked) == [9] * 50
    assert work.done == [3]
    assert await shared.get(3, lambda: work.run(3)) == 9
    assert work.done == [3, 3], "what is asked later is found out anew"


async def test_different_work_is_done_one_after_the_other() -> None:
    work = Work()
    work.go_on.set()
    shared: SharedWork[int, int] = SharedWork("squares")
    numbers = range(20)
    asked = [asyncio.create_task(shared.get(number, partial(work.run, number))) for number in numbers]
    assert await asyncio.gather(*asked) == [number * number for number in numbers]
    assert work.done == list(numbers)
    assert work.most_at_once == 1


async def test_who_goes_away_does_not_end_the_work_of_others() -> None:
    work = Work()
    shared: SharedWork[int, int] = SharedWork("squares")
    first = asyncio.create_task(shared.get(3, lambda: work.run(3)))
    await idle()
    second = asyncio.create_task(shared.get(3, lambda: work.run(3)))
    await idle()
    first.cancel()
    await idle()
    work.go_on.set()
    assert await second == 9
    assert work.done == [3]


async def test_a_failure_is_logged_once_and_told_to_all_who_asked(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> int:
        raise ValueError("broken")

    shared: SharedWork[int, int] = SharedWork("squares")
    asked = [asyncio.create_task(shared.get(3, fail)) for _ in range(5)]
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(result) for result in results] == [SharedWorkFailed] * 5
    assert [record.getMessage() for record in caplog.records] == ["squares: failed"]
    assert await shared.get(3, lambda: square(3)) == 9, "the next one is done"


async def square(number: int) -> int:
    return number * number
