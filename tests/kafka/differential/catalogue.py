# SPDX-License-Identifier: Apache-2.0
"""What a scenario is, and the list of all of them.

A scenario is a function that plays raw requests through a `Script`. `@scenario` registers it, once for each
combination of the values it is given: `@scenario(version=every(ApiKey.HEARTBEAT))` makes five scenarios of one
function, which takes `version` as a keyword argument.
"""

import importlib
import itertools
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from protocol.apis import ApiKey
from tests.support.apis import SUPPORTED

if TYPE_CHECKING:
    from tests.kafka.differential.script import Script

Play = Callable[..., None]

ORDINARY: Final = "ordinary"
"""Kafka's default settings, but that nobody waits for a group's first rebalance."""
TIGHT: Final = "tight"
"""Short limits: sessions from a tenth of a second, three members a group, a first rebalance that waits; topics are
not created by asking for them."""
ALONE: Final = "alone"
"""As `ORDINARY`, on a server of its own, where scenarios play one after the other: those whose group has an id that
cannot have the scenario's prefix, the empty one. Each ends without that group."""
CLASSIC: Final = "classic"
"""As `ORDINARY`, where Kafka has no groups of KIP-848 (`group.version` is 0)."""


@dataclass(frozen=True)
class Scenario:
    """One scenario with its values: `differs` names the deliberate difference that it shows, if it shows one."""

    name: str
    function: Play
    values: Mapping[str, Any] = field(hash=False)
    settings: str = ORDINARY
    differs: str | None = None
    slow: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def file(self) -> str:
        """The golden file that holds it: one a module."""
        return self.name.partition(".")[0]

    @property
    def prefix(self) -> str:
        """What the names of its groups and topics begin with, so that scenarios do not meet."""
        return f"s{zlib.crc32(self.name.encode()):08x}."

    def play(self, script: "Script") -> None:
        """Play it."""
        self.function(script, **self.values)


_registered: Final[list[Scenario]] = []


def every(api: ApiKey, *, since: int = 0, until: int = 1 << 15) -> Mapping[str, int]:
    """The versions of an api that are served, at most from `since` to `until`."""
    low, high = SUPPORTED[api]
    return {f"v{version}": version for version in range(max(low, since), min(high, until) + 1)}


def scenario(
    *,
    settings: str = ORDINARY,
    differs: str | None = None,
    slow: bool = False,
    **values: Mapping[str, Any] | Iterable[Any],
) -> Callable[[Play], Play]:
    """Register the decorated function for every combination of `values`; a mapping gives each value its name.

    `slow`: it waits for time to pass, or an answer depends on how much has, so it is started before the others.
    """

    def register(function: Play) -> Play:
        module = function.__module__.rpartition(".")[2]
        choices = [
            [(key, str(name), value) for name, value in _named(options).items()]
            for key, options in values.items()
        ]
        for combination in itertools.product(*choices):
            name = " ".join([f"{module}.{function.__name__}", *(label for _, label, _ in combination)])
            given = {key: value for key, _, value in combination}
            _registered.append(Scenario(name, function, given, settings, differs, slow))
        return function

    return register


def _named(options: Mapping[str, Any] | Iterable[Any]) -> Mapping[str, Any]:
    return options if isinstance(options, Mapping) else {str(option): option for option in options}


def all_scenarios() -> list[Scenario]:
    """Every scenario, in the order of the modules and within them of the source."""
    folder = Path(__file__).with_name("scenarios")
    for module in sorted(path.stem for path in folder.glob("*.py")):
        importlib.import_module(f"tests.kafka.differential.scenarios.{module}")
    names = [each.name for each in _registered]
    assert len(set(names)) == len(names), "two scenarios have the same name"
    prefixes = {each.prefix for each in _registered}
    assert len(prefixes) == len(names), "two scenarios have the same prefix: rename one"
    return sorted(_registered, key=lambda each: each.file)
