# SPDX-License-Identifier: Apache-2.0
"""Runs a peer's suite that is written for pytest, in a process of its own."""

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.peers.fetching import gently
from tests.peers.outcome import Outcome, Verdict

PLUGIN = "groupkeeper_skipping"
TEST_TIMEOUT_S = 180
RUN_TIMEOUT_S = 2_400
# Ours, which would change how the peer's tests are run; both suites have options of their own.
_WITHOUT = ("randomly", "hypothesispytest", "cacheprovider")


@dataclass(frozen=True)
class Suite:
    """Which of a suite's tests are run, and how.

    `names` and `words` give the reason why a test is skipped: by its name, or by a word that is one of its fixtures
    or stands in its source. `overlay` are files of ours that are put into the suite, by their place in it.
    """

    files: Sequence[str]
    names: Mapping[str, str]
    words: Mapping[str, str]
    overlay: Mapping[str, Path] = field(default_factory=dict)
    options: Sequence[str] = ()


def by_function(reasons: Mapping[str, str]) -> dict[str, str]:
    """Reasons by the names that reports show, as `Suite.names` has them."""
    return {name.partition("::")[2].partition("[")[0]: reason for name, reason in reasons.items()}


def run_suite(suite: Suite, root: Path, work: Path, env: Mapping[str, str]) -> list[Outcome]:
    """Run the suite whose sources are in `root`; `work` takes its report."""
    overlay = {f"{PLUGIN}.py": Path(__file__).with_name("skipping.py"), **suite.overlay}
    for place, source in overlay.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, root / place)
    report = work / "report.xml"
    options = [f"--timeout={TEST_TIMEOUT_S}", "--timeout-method=signal", f"--junitxml={report}", "-q"]
    without = [word for plugin in _WITHOUT for word in ("-p", f"no:{plugin}")]
    command = [sys.executable, "-m", "pytest", "-p", PLUGIN, *without, *options, *suite.options, *suite.files]
    rules = json.dumps({"names": dict(suite.names), "words": dict(suite.words)})
    done = subprocess.run(
        gently(command),
        cwd=root,
        env={**_clean_environment(), **env, "PEERS_RULES": rules},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    (work / "output.txt").write_text(done.stdout + done.stderr)
    assert report.exists(), f"pytest made no report:\n{done.stdout[-4000:]}{done.stderr[-2000:]}"
    return read_report(report)


def _clean_environment() -> dict[str, str]:
    """Ours without what makes pytest and the suites act otherwise."""
    left_out = ("PYTEST_", "PYTHONPATH", "KAFKA_", "CI")
    return {name: value for name, value in os.environ.items() if not name.startswith(left_out)}


def read_report(path: Path) -> list[Outcome]:
    """The outcomes in a report as pytest writes it for `--junitxml`."""
    outcomes: dict[str, Outcome] = {}
    for case in ET.parse(path).getroot().iter("testcase"):
        module = case.get("classname", "").rpartition("test_")[2]
        name = f"test_{module}::{case.get('name')}"
        outcome = _outcome(name, case)
        # A test whose teardown fails is reported twice.
        if name not in outcomes or outcome.verdict is Verdict.FAILED:
            outcomes[name] = outcome
    return list(outcomes.values())


def _outcome(name: str, case: ET.Element) -> Outcome:
    seconds = float(case.get("time", 0))
    for kind in ("failure", "error"):
        if (found := case.find(kind)) is not None:
            reason = (found.get("message") or kind).splitlines()
            return Outcome(name, Verdict.FAILED, "\n".join(reason[:3]), seconds)
    if (found := case.find("skipped")) is not None:
        return Outcome(name, Verdict.SKIPPED, found.get("message") or "skipped", seconds)
    return Outcome(name, Verdict.PASSED, seconds=seconds)
