# SPDX-License-Identifier: Apache-2.0
"""Splits work on many topics into steps, between which it yields to the event loop; pure."""

from collections import Counter
from collections.abc import Generator, Hashable, Iterable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)
Steps = Generator[None, None, T]
"""Work that yields where others may run, and returns its result."""
TOPICS_PER_STEP: Final = 10
"""The number of topics that an edit changes in a step: some 100 microseconds."""
COUNTED_PER_STEP: Final = 250
"""The number of items that are only read in a step."""


def iterate_in_steps(items: Iterable[T], per_step: int = TOPICS_PER_STEP) -> Iterator[T | None]:
    """Yield the items, and None after every `per_step` of them: where work in steps is to yield."""
    for number, item in enumerate(items, 1):
        yield item
        if number % per_step == 0:
            yield None


def count_in_steps(items: Iterable[H]) -> Steps[Counter[H]]:
    """Count how often each item occurs, in the order in which the items come."""
    times: Counter[H] = Counter()
    for item in iterate_in_steps(items, COUNTED_PER_STEP):
        if item is None:
            yield
        else:
            times[item] += 1
    return times


def run_all_steps(steps: Steps[T]) -> T:
    """Run the steps one after the other and return their result."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
