# SPDX-License-Identifier: Apache-2.0
"""A request costs the compiled server no more than is kept, and what is kept is compared as it should be."""

import shutil
import subprocess
import sys

import pytest

from bench import instructions
from bench.installed import ROOT, is_installed
from tests.support.documented import Documented
from tests.support.missing import skip_or_fail

KEPT = {"heartbeat": 10_000, "commit": 50_000}


@pytest.mark.parametrize(
    ("commit", "found"),
    [(40_000, []), (50_000, []), (51_900, []), (52_100, ["commit"]), (500_000, ["commit"])],
)
def test_what_costs_over_four_per_cent_more_is_found(commit: int, found: list[str]) -> None:
    assert instructions.too_many({"heartbeat": 10_000, "commit": commit}, KEPT) == found


def test_every_scenario_is_kept_for_every_python() -> None:
    for figures in instructions.kept_figures().values():
        assert sorted(figures) == sorted([*instructions.SCENARIOS, instructions.WEIGHED])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_request_costs_no_more_than_is_kept(documented: Documented) -> None:
    if shutil.which("valgrind") is None:
        skip_or_fail("valgrind is not installed")
    here = f"VENV={sys.prefix}"
    asked = subprocess.run(["make", "--question", "install-dev", here], cwd=ROOT, check=False)
    if asked.returncode or not is_installed():  # make would install it now, below the tests that run
        skip_or_fail("the installed groupkeeper was not made from this tree: make install-dev")
    kept = instructions.kept_figures().get(instructions.this_python())
    if kept is None:
        skip_or_fail(f"bench/instructions.json has nothing for {instructions.this_python()}")
    (command,) = documented.commands
    # Fails with the figures if a request costs more; if that is meant: ARGS="instructions --write"
    documented.run(command, {"make bench": f"make bench {here}"}, cwd=ROOT)
