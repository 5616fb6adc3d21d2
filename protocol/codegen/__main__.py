# SPDX-License-Identifier: Apache-2.0
"""Generates the modules of `protocol.hot` from Kafka's schemas: `python -m protocol.codegen [--check]`."""

import argparse
import sys
from pathlib import Path
from typing import Final

from protocol.codegen.module import render_api, render_package
from protocol.codegen.schema import snake_case

HOT_APIS: Final = ("Heartbeat", "JoinGroup", "LeaveGroup", "OffsetCommit", "OffsetFetch", "SyncGroup")
TARGET: Final = Path(__file__).parent.parent / "hot"


def render() -> dict[str, str]:
    """Return the up-to-date text of the package's modules, by file name."""
    modules = {api: snake_case(api) for api in HOT_APIS}
    sources = {f"{module}.py": render_api(api) for api, module in modules.items()}
    return {"__init__.py": render_package(modules), **sources}


def find_stale_modules(target: Path, wanted: dict[str, str]) -> list[str]:
    """Return the modules in `target` that are missing, differ from `wanted`, or are left over."""
    present = {path.name: path.read_text() for path in target.glob("*.py")}
    return sorted(name for name in present.keys() | wanted.keys() if present.get(name) != wanted.get(name))


def main(arguments: list[str] | None = None, target: Path = TARGET) -> int:
    """Write the modules, or with --check return 1 if they are not up to date."""
    parser = argparse.ArgumentParser(prog="python -m protocol.codegen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if something would change")
    options = parser.parse_args(arguments)
    wanted = render()
    outdated = find_stale_modules(target, wanted)
    if options.check:
        for name in outdated:
            sys.stderr.write(f"{name} is not what python -m protocol.codegen writes\n")
        return 1 if outdated else 0
    for name in outdated:
        if name in wanted:
            (target / name).write_text(wanted[name])
        else:
            (target / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
