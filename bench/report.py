# SPDX-License-Identifier: Apache-2.0
"""Results: what was measured as plain data, and as lines for people."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench.load import Measured

PER: Final = 100_000  # CPU is given for so many requests
ERROR_KINDS_SHOWN: Final = 5

Result = dict[str, Any]  # what --json writes, one for each scenario


def percentiles_ms(latencies_s: Sequence[float]) -> dict[str, float] | None:
    """p50, p95, p99 and the maximum in milliseconds, by nearest rank; None without any request."""
    if not latencies_s:
        return None
    ordered = sorted(latencies_s)
    ranks = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {
        name: round(ordered[math.ceil(rank * len(ordered)) - 1] * 1000, 3) for name, rank in ranks.items()
    }


def describe_errors(errors: Counter[str]) -> Result:
    """The number of errors and the most frequent kinds."""
    return {"errors": errors.total(), "error_kinds": dict(errors.most_common(ERROR_KINDS_SHOWN))}


def describe_load(scenario: str, measured: Measured) -> Result:
    """A closed loop's result. `*_per_100k` are CPU seconds per 100,000 good replies."""
    requests = measured.requests
    return {
        "scenario": scenario,
        "requests": requests,
        "seconds": round(measured.seconds, 3),
        "requests_per_s": round(requests / measured.seconds, 1),
        "latency_ms": percentiles_ms(measured.latencies_s),
        "server_cpu_s": _rounded(measured.server_cpu_s),
        "server_cpu_s_per_100k": _per_100k(measured.server_cpu_s, requests),
        "driver_cpu_s": _rounded(measured.driver_cpu_s),
        "driver_cpu_s_per_100k": _per_100k(measured.driver_cpu_s, requests),
        **describe_errors(measured.errors),
    }


def _per_100k(cpu_s: float | None, requests: int) -> float | None:
    return round(cpu_s / requests * PER, 3) if cpu_s is not None and requests else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


COLUMNS: Final = (  # title, width, key path, decimals
    ("requests/s", 11, ("requests_per_s",), 0),
    ("CPU s/100k", 11, ("server_cpu_s_per_100k",), 2),
    ("p50 ms", 9, ("latency_ms", "p50"), 2),
    ("p99 ms", 9, ("latency_ms", "p99"), 2),
    ("errors", 7, ("errors",), 0),
    ("driver CPU s/100k", 18, ("driver_cpu_s_per_100k",), 2),
)


def heading(first: str, width: int) -> str:
    """The table's first line."""
    return f"{first:{width}}" + "".join(f"{title:>{size}}" for title, size, _path, _decimals in COLUMNS)


def line(label: str, width: int, result: Result) -> str:
    """A result as a line of the table, with its notes and kinds of errors behind."""
    cells = (cell(pick(result, path), size, decimals) for _title, size, path, decimals in COLUMNS)
    return f"{label:{width}}" + "".join(cells) + remarks(result)


def remarks(result: Result) -> str:
    """What does not fit in columns: the scenario's own findings, and which errors there were."""
    notes = [f"{name.replace('_', ' ')} {value:,}" for name, value in result.get("findings", {}).items()]
    notes += [f"{count} x {kind}" for kind, count in result.get("error_kinds", {}).items()]
    return f"  {'; '.join(notes)}" if notes else ""


def pick(result: Mapping[str, Any], path: Sequence[str]) -> float | None:
    """A number inside a result, None where it was not measured."""
    value: Any = result
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, int | float) else None


def cell(value: float | None, width: int, decimals: int) -> str:
    """A number, right-aligned; a dash for nothing."""
    return f"{'-':>{width}}" if value is None else f"{value:>{width},.{decimals}f}"
