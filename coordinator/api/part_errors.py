# SPDX-License-Identifier: Apache-2.0
"""Counting the errors that an answer has for single topics, partitions, groups or members (Kafka's ErrorsPerSec).

Where these stand differs by api (`Api.error_parts`). The handlers of the two apis that every consumer asks all the time
know by themselves whether there is any, and only then have them counted; the answers of the others are looked through.
"""

from collections.abc import Iterator, Sequence

from coordinator.telemetry.stats import Stats
from protocol.apis import ApiKey


def count_part_errors(stats: Stats, key: ApiKey, parts: Sequence[str], response: object) -> None:
    """Count every error of a part of this response; `parts` are the lists (`Api.error_parts`)."""
    for code in part_errors(parts, response):
        stats.error(key, code)


def part_errors(parts: Sequence[str], response: object) -> Iterator[int]:
    """The errors of the parts of this response; `parts` are the lists (`Api.error_parts`)."""
    for part in getattr(response, parts[0], None) or ():
        code = getattr(part, "error_code", 0)
        if code:
            yield code
        if len(parts) > 1:
            yield from part_errors(parts[1:], part)
