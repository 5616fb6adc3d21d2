# SPDX-License-Identifier: Apache-2.0
"""InitProducerId: ids for producers without transactions; with one it is a difference."""

from typing import Any

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.script import Link, Script
from tests.support.waiting import wait_until

INIT = ApiKey.INIT_PRODUCER_ID
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MAX = 2**63 - 1
NOT_YET = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)


def request(timeout_ms: int = 60_000, **more: Any) -> dict[str, Any]:
    """The fields of a producer's first question."""
    return {"transactional_id": None, "transaction_timeout_ms": timeout_ms, **more}


def producer(s: Script) -> Link:
    """A connection to a server that has ids: a Kafka that has just started gets its first ones from its controller."""
    a = s.connect()
    with s.quietly():
        wait_until(lambda: a.ask(INIT, 0, **request()).error_code == ErrorCode.NONE, what="ids for producers")
    return a


@scenario(version=every(INIT), timeout_ms=[INT32_MIN, 0, 60_000, INT32_MAX])
def without_transactions(s: Script, version: int, timeout_ms: int) -> None:
    producer(s).ask(INIT, version, **request(timeout_ms))


@scenario(
    version=every(INIT, since=3),
    has={
        "id and epoch": (7, 3),
        "the highest": (INT64_MAX, 32_767),
        "below none": (-2, -2),
        "an id alone": (7, -1),
        "an epoch alone": (-1, 0),
    },
)
def by_a_producer_that_has_an_id(s: Script, version: int, has: tuple[int, int]) -> None:
    a = producer(s)
    a.ask(INIT, version, **request(producer_id=has[0], producer_epoch=has[1]))
    a.ask(INIT, version, **request(transactional_id="", producer_id=has[0], producer_epoch=has[1]))


@scenario(version=every(INIT))
def with_an_empty_transactional_id(s: Script, version: int) -> None:
    s.connect().ask(INIT, version, **request(transactional_id=""))


@scenario(differs="no-transactions", version=every(INIT))
def with_a_transactional_id(s: Script, version: int) -> None:
    """Kafka makes a topic for it first, and is asked until it has."""
    a = s.connect()

    def decided() -> list[int]:
        answer = a.ask(INIT, version, **request(transactional_id=s.id("t")))
        return [] if answer.error_code in NOT_YET else [answer.error_code]

    with s.quietly():
        a.ask(ApiKey.FIND_COORDINATOR, 3, key=s.id("t"), key_type=1)
        (error,) = wait_until(decided, what="a coordinator of transactions")
    s.note(f"comes to {ErrorCode(error).name}")
