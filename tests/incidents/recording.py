# SPDX-License-Identifier: Apache-2.0
"""What a node's /metrics said during an incident, as promtool reads it.

An incident is played STEP_S apart and told as if its samples were INTERVAL_S apart, so that ten minutes take forty
seconds. Times of the wall clock count from the beginning of the recording, where promtool's clock stands at 0, and
the lag in seconds is told in the same measure.
"""

import asyncio
import json
import re
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from itertools import groupby
from pathlib import Path
from time import time
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from tests.support.processes import REPOSITORY

RULES: Final = REPOSITORY / "deploy" / "prometheus.rules.yml"
RECORDED: Final = Path(__file__).parent / "recorded"
STEP_S: Final = 1.0
INTERVAL_S: Final = 15
INSTANCE: Final = "node:9308"

Values = Mapping[str, float]


def metrics_of_the_rules() -> frozenset[str]:
    """The names of the series that the alerting rules ask for."""
    expressions = re.findall(r"^ +expr: (.+)$", RULES.read_text(), re.MULTILINE)
    return frozenset(name for each in expressions for name in re.findall(r"\bgroupkeeper_\w+", each))


class Recording:
    """Samples of one node's metrics, in phases."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._wanted = metrics_of_the_rules()
        self._began_s = time()
        self._next_s = 0.0
        self._samples: list[Values | None] = []
        self.phases: dict[str, int] = {}
        """The number of the first sample of each phase."""

    async def phase(
        self, name: str, samples: int, act: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        """Take so many samples, and before each let something happen."""
        self.phases.setdefault(name, len(self._samples))
        for _ in range(samples):
            if act is not None:
                await act()
            self._samples.append(await asyncio.to_thread(self._scrape))
            await self._until_next()

    async def _until_next(self) -> None:
        now_s = asyncio.get_running_loop().time()
        self._next_s = max(self._next_s + STEP_S, now_s)
        await asyncio.sleep(self._next_s - now_s)

    def _scrape(self) -> Values | None:
        """Every series that the rules ask for; None without an answer."""
        try:
            with urllib.request.urlopen(self.url, timeout=5) as answer:
                text = answer.read().decode()
        except (urllib.error.URLError, OSError):
            return None
        return {
            _series(sample.name, sample.labels): self._value(sample.name, sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name in self._wanted
        }

    def _value(self, name: str, value: float) -> float:
        if name == "groupkeeper_group_lag_seconds":
            return value / STEP_S * INTERVAL_S
        if not name.endswith("_timestamp_seconds") or not value:
            return value
        return max(1.0, round((value - self._began_s) / STEP_S) * INTERVAL_S)

    def save(self, incident: str) -> Path:
        """Write the recording beside this file."""
        names = sorted({name for sample in self._samples if sample for name in sample})
        series = {name: _notation([(sample or {}).get(name) for sample in self._samples]) for name in names}
        path = RECORDED / f"{incident}.json"
        told = {"samples": len(self._samples), "phases": self.phases, "series": series}
        path.write_text(json.dumps(told, indent=1) + "\n")
        return path


def _series(name: str, labels: Mapping[str, str]) -> str:
    pairs = ", ".join(f'{key}="{value}"' for key, value in sorted({**labels, "instance": INSTANCE}.items()))
    return f"{name}{{{pairs}}}"


def _notation(values: list[float | None]) -> str:
    """As promtool writes series: `0+0x3` is 0 four times, `_x3` is nothing three times.

    A series that is missing in a scrape is stale at once, as Prometheus has it.
    """
    parts: list[str] = []
    for value, run in groupby(values):
        count = len(list(run))
        if value is None:
            if parts:
                parts.append("stale")
                count -= 1
            if count:
                parts.append(f"_x{count}")
        else:
            parts.append(f"{value:.12g}+0x{count - 1}")
    return " ".join(parts)


def recorded(incident: str) -> dict[str, Any]:
    """A recording that was kept: how many `samples`, where `phases` begin, and the `series`."""
    found: dict[str, Any] = json.loads((RECORDED / f"{incident}.json").read_text())
    return found
