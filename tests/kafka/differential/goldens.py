# SPDX-License-Identifier: Apache-2.0
"""The golden transcripts: one text file a module of scenarios, under `golden/`.

`golden/kafka/` holds what Kafka answers in every scenario, `golden/groupkeeper/` what Groupkeeper answers where that
differs on purpose.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tests.kafka.differential.catalogue import Scenario
from tests.kafka.differential.play import Transcript

GOLDEN: Final = Path(__file__).with_name("golden")
KAFKA: Final = "kafka"
GROUPKEEPER: Final = "groupkeeper"

_TITLE: Final = "== "
_HEAD: Final = """\
Made by `make golden` (python -m tests.kafka.differential.refresh): do not edit.
"""


def load(directory: str) -> dict[str, Transcript]:
    """All transcripts of a directory by the name of their scenario."""
    transcripts: dict[str, Transcript] = {}
    for path in sorted((GOLDEN / directory).glob("*.txt")):
        current: Transcript = []
        for line in path.read_text().splitlines():
            if line.startswith(_TITLE):
                current = transcripts.setdefault(line.removeprefix(_TITLE), [])
            elif line:
                current.append(line)
    return transcripts


def store(directory: str, scenarios: Iterable[Scenario], transcripts: Mapping[str, Transcript]) -> None:
    """Write the transcripts of these scenarios, in their order; files that hold none any more are removed."""
    files: dict[str, list[str]] = {}
    for scenario in scenarios:
        if scenario.name in transcripts:
            text = "\n".join([_TITLE + scenario.name, *transcripts[scenario.name]])
            files.setdefault(scenario.file, [_HEAD]).append(text + "\n")
    folder = GOLDEN / directory
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.txt"):
        if path.stem not in files:
            path.unlink()
    for name, parts in files.items():
        (folder / f"{name}.txt").write_text("\n".join(parts))
