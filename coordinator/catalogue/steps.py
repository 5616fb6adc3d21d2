# SPDX-License-Identifier: Apache-2.0
"""Work on many topics is done in steps, between which others have their turn; pure."""

from collections import Counter
from collections.abc import Generator, Hashable, Iterable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)
Steps = Generator[None, None, T]
"""Work that yields where it can give way, and returns what it comes to."""
TOPICS_PER_STEP: Final = 10
"""How many topics an edit changes before its next step: some 100 microseconds."""
COUNTED_PER_STEP: Final = 250
"""How many things are only looked at in a step."""


def in_steps(items: Iterable[T], per_step: int = TOPICS_PER_STEP) -> Iterator[T | None]:
    """The items, and None after every `per_step` of them: where work in steps is to yield."""
    for number, item in enumerate(items, 1):
        yield item
        if number % per_step == 0:
            yield None


def counted(items: Iterable[H]) -> Steps[Counter[H]]:
    """How often each of the items is there, in the order in which they come."""
    times: Counter[H] = Counter()
    for item in in_steps(items, COUNTED_PER_STEP):
        if item is None:
            yield
        else:
            times[item] += 1
    return times


def all_at_once(steps: Steps[T]) -> T:
    """What the steps come to, taken one after the other."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
