# SPDX-License-Identifier: Apache-2.0
"""What was measured as a part of RESULTS.md."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Final, NamedTuple

from bench.page import facts_table

TITLE: Final = "# A gateway's process is killed"
HEAD: Final = f"""\
{TITLE}

One process forwards, and is killed with SIGKILL while a client of each library, with the defaults of that, commits
one offset after the other; each of {{rounds}} rounds has a gateway of its own. From the kill on it is tried every
{{every_ms:g}} ms whether a new connection gets an answer to ApiVersions: so long **the gateway** is away. What a client
needs longer for its next acknowledged commit is **its own** time: its back-off, the connections that it makes anew, and
the rest that it takes between two commits ({{between_ms:g}} ms). bench/README.md says more.
"""
SPARE: Final = {True: "stands by (`gateway.spare=true`)", False: "is started then (`gateway.spare=false`)"}


class Round(NamedTuple):
    """One kill; times are milliseconds from it on."""

    has_spare: bool
    answered_ms: float
    """Until a new connection got an answer."""
    clients_ms: Mapping[str, float]
    """Until the next acknowledged commit of each client."""


class Measured(NamedTuple):
    """Everything."""

    rounds: int
    every_ms: float
    between_ms: float
    took: Sequence[Round]
    spare_mib: Sequence[float]
    """What the process that stands by has of memory for itself."""


def markdown(measured: Measured, facts: Mapping[str, str]) -> str:
    """The whole part."""
    head = HEAD.format(rounds=measured.rounds, every_ms=measured.every_ms, between_ms=measured.between_ms)
    memory = f"The process that stands by has {_cell(measured.spare_mib, 'MiB')} of memory for itself."
    return "\n\n".join([f"{head}\n{facts_table(facts)}", "\n".join(_rows(measured.took)), memory])


def _rows(took: Sequence[Round]) -> Iterator[str]:
    names = list(took[0].clients_ms)
    yield f"| the next process | the gateway is away | {' | '.join(f'{name}: its own' for name in names)} |"
    yield f"|---|--:|{'--:|' * len(names)}"
    for has_spare, title in SPARE.items():
        rounds = [each for each in took if each.has_spare == has_spare]
        own = [[each.clients_ms[name] - each.answered_ms for each in rounds] for name in names]
        cells = [_cell(times, "ms") for times in [[each.answered_ms for each in rounds], *own]]
        yield f"| {title} | {' | '.join(cells)} |"


def _cell(numbers: Sequence[float], unit: str) -> str:
    return f"{median(numbers):,.0f} {unit} ({min(numbers):,.0f} to {max(numbers):,.0f})"
