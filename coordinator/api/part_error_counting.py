# SPDX-License-Identifier: Apache-2.0
"""Counts the errors of single topics, partitions, groups or members in a response (Kafka's ErrorsPerSec).

Their place differs by api (`Api.error_parts`). The handlers of the two apis that every consumer calls all the time know
if there are errors, and have them counted only then; the responses of all other apis are searched.
"""

from collections.abc import Iterator, Sequence

from coordinator.telemetry.stats import Stats
from protocol.apis import ApiKey


def record_part_errors(stats: Stats, key: ApiKey, parts: Sequence[str], response: object) -> None:
    """Count every error in the lists `parts` of this response (`Api.error_parts`)."""
    for code in iterate_part_errors(parts, response):
        stats.count_error(key, code)


def iterate_part_errors(parts: Sequence[str], response: object) -> Iterator[int]:
    """Yield every error in the lists `parts` of this response (`Api.error_parts`)."""
    for part in getattr(response, parts[0], None) or ():
        code = getattr(part, "error_code", 0)
        if code:
            yield code
        if len(parts) > 1:
            yield from iterate_part_errors(parts[1:], part)
