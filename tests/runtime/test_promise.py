# SPDX-License-Identifier: Apache-2.0
"""A promise and the coroutine that waits for it: resolved before, while and after somebody waits."""

import pytest

from coordinator.runtime.promise import Promise, run_until_next_wait


class Woken:
    """Counts how often it was woken."""

    count = 0

    def wake(self) -> None:
        self.count += 1


async def twice(promise: Promise[int]) -> int:
    """Wait for the number."""
    return 2 * await promise


def test_a_promise_that_was_resolved_before_is_not_waited_for() -> None:
    promise: Promise[int] = Promise(Woken().wake)
    promise.resolve(0)
    waiting = twice(promise)
    assert run_until_next_wait(waiting) == 0


def test_who_waits_is_woken_and_run_on() -> None:
    woken = Woken()
    promise: Promise[int] = Promise(woken.wake)
    waiting = twice(promise)
    assert [run_until_next_wait(waiting), run_until_next_wait(waiting)] == [None, None], (
        "run on for nothing, it waits again"
    )
    assert woken.count == 0
    promise.resolve(21)
    assert woken.count == 1
    assert run_until_next_wait(waiting) == 42


def test_an_exception_is_raised_where_it_is_awaited() -> None:
    promise: Promise[int] = Promise(Woken().wake)
    waiting = twice(promise)
    assert run_until_next_wait(waiting) is None
    promise.resolve(KeyError("lost"))
    with pytest.raises(KeyError, match="lost"):
        run_until_next_wait(waiting)


def test_nobody_is_woken_who_waits_no_more() -> None:
    woken = Woken()
    promise: Promise[int] = Promise(woken.wake)
    waiting = twice(promise)
    assert run_until_next_wait(waiting) is None
    waiting.close()
    promise.resolve(1)
    assert woken.count == 0
