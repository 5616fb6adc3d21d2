# SPDX-License-Identifier: Apache-2.0
"""Counting the errors that an answer has for single topics, partitions, groups or members (Kafka's ErrorsPerSec).

Where these stand differs by api. The handlers of the two apis that every consumer asks all the time know by
themselves whether there is any, and only then have them counted; the answers of the others are looked through.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from coordinator.telemetry.stats import Stats
from protocol.apis import ApiKey

PARTS: Final[Mapping[ApiKey, Sequence[str]]] = {
    ApiKey.PRODUCE: ("responses", "partition_responses"),
    ApiKey.FETCH: ("responses", "partitions"),
    ApiKey.LIST_OFFSETS: ("topics", "partitions"),
    ApiKey.METADATA: ("topics",),
    ApiKey.OFFSET_COMMIT: ("topics", "partitions"),
    ApiKey.OFFSET_FETCH: ("groups", "topics", "partitions"),
    ApiKey.FIND_COORDINATOR: ("coordinators",),
    ApiKey.LEAVE_GROUP: ("members",),
    ApiKey.DESCRIBE_GROUPS: ("groups",),
    ApiKey.CREATE_TOPICS: ("topics",),
    ApiKey.DELETE_TOPICS: ("responses",),
    ApiKey.DESCRIBE_CONFIGS: ("results",),
    ApiKey.CREATE_PARTITIONS: ("results",),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: ("responses",),
    ApiKey.DELETE_GROUPS: ("results",),
    ApiKey.OFFSET_DELETE: ("topics", "partitions"),
}
"""The lists, one inside the other, whose elements may have an `error_code`."""

COUNTED_BY_HANDLER: Final = frozenset({ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH})


def count_part_errors(stats: Stats, key: ApiKey, response: Any) -> None:
    """Count every error of a part of this response."""
    for code in part_errors(key, response):
        stats.error(key, code)


def part_errors(key: ApiKey, response: Any) -> Iterator[int]:
    """The errors of the parts of this response."""
    return _errors(response, PARTS[key])


def _errors(whole: Any, path: Sequence[str]) -> Iterator[int]:
    for part in getattr(whole, path[0], None) or ():
        code = getattr(part, "error_code", 0)
        if code:
            yield code
        if len(path) > 1:
            yield from _errors(part, path[1:])
