# SPDX-License-Identifier: Apache-2.0
"""Reads what the demo prints."""

import re
import subprocess
from collections import Counter
from typing import Final

PROCESSES: Final = 3
TITLE: Final = "Groupkeeper: two Kafka consumers"


def assert_facts_agree(told: str) -> None:
    """The story is plain text, and what it says of offsets, members and processes fits together."""
    assert Counter(row(told, "held by")) == {"ada": 6, "bob": 6}
    assert row(told, "held before") == row(told, "held by")
    assert row(told, "held now") == ["bob"] * 12
    adas = [partition for partition, holder in enumerate(row(told, "held by")) if holder == "ada"]
    lasts, starts = row(told, "ada's last commit"), offsets(told, "bob goes on at")
    assert [partition for partition, last in enumerate(lasts) if last != "-"] == adas
    assert all(starts[partition] >= int(lasts[partition]) for partition in adas)
    assert all(now > before for now, before in zip(offsets(told, "acknowledged"), starts, strict=True))
    both = zip(offsets(told, "found again"), offsets(told, "acknowledged"), strict=True)
    assert all(found >= acknowledged for found, acknowledged in both)
    assert "All 12 committed offsets are there." in told
    assert re.search(r"\d\.\d s after the kill bob holds all 12 partitions", told)

    assert all(len(line) <= 100 and line == line.rstrip() for line in told.splitlines())
    assert "\x1b" not in told
    found_pids = pids(told)
    assert len(set(found_pids)) == PROCESSES + 1  # the service is started twice
    assert not any(runs(pid) for pid in found_pids)


def assert_second_act(told: str) -> None:
    """Every record of the cluster was handled once."""
    assert "All 90 records were handled once." in told
    assert [
        sum(map(int, cells.split())) for cells in re.findall(r"^ +lag +([\d ]+)$", told, re.MULTILINE)
    ] == [30]


def row(told: str, label: str) -> list[str]:
    """The 12 cells of the table row with this label."""
    (cells,) = re.findall(rf"^ +{re.escape(label)} +((?:\S+ +){{11}}\S+)$", told, re.MULTILINE)
    return str(cells).split()


def offsets(told: str, label: str) -> list[int]:
    """The same as numbers."""
    return [int(cell) for cell in row(told, label)]


def pids(told: str) -> list[int]:
    """The processes that the story names, each time that it does."""
    return [int(pid) for pid in re.findall(r"\(pid (\d+)\)", told)]


def runs(pid: int) -> bool:
    """Whether there is such a process, and not just its exit status that nobody has asked for yet."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return state.stdout.strip() != "" and not state.stdout.startswith("Z")
