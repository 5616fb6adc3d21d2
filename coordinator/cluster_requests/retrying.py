# SPDX-License-Identifier: Apache-2.0
"""The errors on which a request is tried again, and the pauses before that."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Final, TypeVar

from protocol.errors import ErrorCode

T = TypeVar("T")

RETRIABLE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""The errors that soon pass: a partition loads or moves, a transaction is open, or the offsets topic is being created.
"""
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 1.0


class RetryLater(Exception):
    """A server has returned an error that soon passes; `doing` names what failed, `code` is Kafka's."""

    def __init__(self, doing: str, code: int) -> None:
        super().__init__(doing, code)
        self.doing = doing
        self.code = code


class RefusedByCluster(Exception):
    """A server has returned an error that stays, perhaps with its reason."""

    def __init__(self, doing: str, code: int, message: str | None) -> None:
        super().__init__(doing, code, message)
        self.doing = doing
        self.code = code
        self.message = message


def raise_for_code(code: int, message: str | None, doing: str) -> None:
    """Return for NONE; raise RetryLater for an error that soon passes, and RefusedByCluster for all others."""
    if code in RETRIABLE:
        raise RetryLater(doing, code)
    if code != ErrorCode.NONE:
        raise RefusedByCluster(doing, code, message)


def iterate_pauses_s(now_s: Callable[[], float], deadline_s: float) -> Iterator[float]:
    """Yield the seconds to wait before each further attempt, as long as these do not reach the deadline."""
    pause_s = FIRST_PAUSE_S
    while now_s() + pause_s < deadline_s:
        yield pause_s
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


async def call_with_retries(
    attempt: Callable[[], Awaitable[T]],
    now_s: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]],
    timeout_s: float,
) -> T:
    """Repeat `attempt` while it raises RetryLater, for `timeout_s` at most; then raise the last RetryLater."""
    pauses_s = iterate_pauses_s(now_s, now_s() + timeout_s)
    while True:
        try:
            return await attempt()
        except RetryLater:
            pause_s = next(pauses_s, None)
            if pause_s is None:
                raise
        await sleep(pause_s)
