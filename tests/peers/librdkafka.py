# SPDX-License-Identifier: Apache-2.0
"""librdkafka's integration tests, from npm: Confluent's JavaScript client holds all of librdkafka's sources."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.peers.differing import explained
from tests.peers.fetching import UnavailableError, gently, locked, npm_package, require, run_command
from tests.peers.librdkafka_tests import NOT_RUN, RULES, RUN, WITH_RECORDS, WITHOUT_AUTOCREATE, Chosen
from tests.peers.logins import WITH_RIGHTS
from tests.peers.outcome import Outcome, Report, Verdict
from tests.support.target import keeps_records, running_target

NAME: Final = "librdkafka"
TOOLS: Final = {
    "kafka-topics": Path(__file__).with_name("kafka_topics.py"),
    "kafka-acls": Path(__file__).with_name("kafka_acls.py"),
}
PACKAGE: Final = "@confluentinc/kafka-javascript"
PACKAGE_VERSION: Final = "1.10.1"
WITHOUT: Final = ("ssl", "sasl", "gssapi", "curl", "zstd", "lz4-ext", "syslog")
SETTINGS: Final[Mapping[str, Mapping[str, str | int]]] = {
    "default": {"group.initial.rebalance.delay.ms": 3_000, "num.partitions": 4},
    "noautocreate": {
        "group.initial.rebalance.delay.ms": 3_000,
        "num.partitions": 4,
        "auto.create.topics.enable": "false",
    },
}
"""Of a server for each of librdkafka's scenarios: its tests take some time for a first rebalance for granted."""
BROKER_VERSION: Final = "4.3.0"
AT_A_TIME: Final = 6  # they mostly wait
BUILD_TIMEOUT_S: Final = 1_200.0
TEST_TIMEOUT_S: Final = 420.0

_LISTED: Final = re.compile(r"^\s*_TEST\((\w+),\s*([^,)]+)", re.MULTILINE)
_SUMMED_UP: Final = re.compile(
    r"^\| (\d{4}_\w+) +\| +(PASSED|SKIPPED|FAILED|RUNNING) \| +([\d.]+)s \|(.*)$", re.MULTILINE
)
_VERDICTS: Final = {
    "PASSED": Verdict.PASSED,
    "SKIPPED": Verdict.SKIPPED,
    "FAILED": Verdict.FAILED,
    "RUNNING": Verdict.FAILED,
}
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class _Suite:
    tests: Path
    work: Path
    tools: Path
    bootstraps: Mapping[str, str]


def run(work: Path) -> Report:
    """Run the tests against servers under `work`. Raises UnavailableError."""
    version, tests = _built()
    chosen, skipped = _divided(list(_skipped(tests)))
    with (
        running_target(work / "default", SETTINGS["default"], WITH_RIGHTS) as default,
        running_target(work / "noautocreate", SETTINGS["noautocreate"], WITH_RIGHTS) as noautocreate,
    ):
        bootstraps = {"default": default.bootstrap, "noautocreate": noautocreate.bootstrap}
        suite = _Suite(tests, work, _tools(work / "tools"), bootstraps)
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            outcomes = [each for found in pool.map(lambda each: _run(suite, each), chosen) for each in found]
    return Report(NAME, version, _once([*outcomes, *skipped]))


def _once(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Without the tests that a scenario skips which another one runs, or that stand among those that are not run."""
    run = {outcome.name for outcome in outcomes if outcome.verdict is not Verdict.SKIPPED}
    reasons = {outcome.name: outcome for outcome in outcomes if outcome.verdict is Verdict.SKIPPED}
    ran = [outcome for outcome in outcomes if outcome.verdict is not Verdict.SKIPPED]
    return [*ran, *(outcome for name, outcome in reasons.items() if name not in run)]


def _divided(skipped: Sequence[Outcome]) -> tuple[Sequence[Chosen], Sequence[Outcome]]:
    """What is run against the chosen target and what is not: where there are records, all that can be."""
    if not keeps_records():
        return RUN, skipped
    differing = explained(NAME)
    run = [outcome.name for outcome in skipped if outcome.reason in WITH_RECORDS]
    left = [outcome for outcome in skipped if outcome.reason not in WITH_RECORDS]
    return (
        [each for each in (*RUN, *map(_chosen, run)) if each.name not in differing],
        [*left, *(Outcome(name, Verdict.SKIPPED, reason) for name, reason in differing.items())],
    )


def _built() -> tuple[str, Path]:
    """The version, and the directory of the tests with their program `test-runner`."""
    for program in ("make", "g++", "bash"):
        require(program, "it builds them")
    root = npm_package(PACKAGE, PACKAGE_VERSION) / "deps" / "librdkafka"
    with locked("librdkafka-build"):
        if not (root / "tests" / "test-runner").exists():
            why = "librdkafka cannot be built"
            run_command(["bash", "configure", *(f"--disable-{part}" for part in WITHOUT)], why, cwd=root)
            run_command(["make", "-j2", "libs"], why, cwd=root, timeout_s=BUILD_TIMEOUT_S)
            run_command(
                ["make", "-j2", "-C", "tests", "test-runner"], why, cwd=root, timeout_s=BUILD_TIMEOUT_S
            )
    config = (root / "Makefile.config").read_text()
    version = re.search(r"RDKAFKA_VERSION_STR=\s*(\S+)", config)
    if version is None:
        raise UnavailableError("its Makefile.config names no version")
    return version[1], root / "tests"


def _tools(directory: Path) -> Path:
    """A directory as Kafka's, with what stands in for those of its tools that the tests call."""
    (directory / "bin").mkdir(parents=True)
    for name, tool in TOOLS.items():
        script = directory / "bin" / f"{name}.sh"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -W ignore "{tool}" "$@"\n')
        script.chmod(0o755)
    return directory


def _run(suite: _Suite, chosen: Chosen) -> list[Outcome]:
    config = suite.work / f"{chosen.file_name}.conf"
    config.write_text(f"bootstrap.servers={suite.bootstraps[chosen.scenario]}\nbroker.address.family=v4\n")
    env = {
        **os.environ,
        "RDKAFKA_TEST_CONF": str(config),
        "TEST_KAFKA_VERSION": BROKER_VERSION,
        "TEST_SCENARIO": chosen.scenario,
        "LD_LIBRARY_PATH": f"{suite.tests.parent / 'src'}:{suite.tests.parent / 'src-cpp'}",
        "TESTS": chosen.number,
        "BROKERS": suite.bootstraps[chosen.scenario],
        "KAFKA_PATH": str(suite.tools),
        **({"SUBTESTS": chosen.subtest} if chosen.subtest else {}),
    }
    env.pop("CI", None)  # makes it wait longer
    command = gently([str(suite.tests / "test-runner"), "-L", "-p1"])
    started = time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=suite.tests,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TEST_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [Outcome(chosen.name, Verdict.FAILED, f"no end after {TEST_TIMEOUT_S:g} s", TEST_TIMEOUT_S)]
    seconds = time.monotonic() - started
    output = _COLOUR.sub("", done.stdout.decode(errors="replace"))
    (suite.work / f"{chosen.file_name}.log").write_text(output)
    outcomes = list(_said(chosen, output, seconds))
    failed = any(outcome.verdict is Verdict.FAILED for outcome in outcomes)
    if not outcomes or (done.returncode and not failed):
        return [Outcome(chosen.name, Verdict.FAILED, _why(output), seconds)]
    return outcomes


def _said(chosen: Chosen, output: str, seconds: float) -> Iterator[Outcome]:
    """What the program says of each test with that number, or of the part that was asked for.

    Of a part it must be said by name, as a name that none has lets everything pass.
    """
    part = re.escape(chosen.subtest)
    if not part:
        for name, verdict, took, why in _SUMMED_UP.findall(output):
            if name.startswith(chosen.number):
                reason = why.strip() if _VERDICTS[verdict] is Verdict.SKIPPED else ""
                reason = _why(output) if _VERDICTS[verdict] is Verdict.FAILED else reason
                yield Outcome(name, _VERDICTS[verdict], reason, float(took))
    elif skipped := re.search(rf"\[ .*{part}.*: SKIP: (.*)", output):
        yield Outcome(chosen.name, Verdict.SKIPPED, skipped[1], seconds)
    elif re.search(rf"\[ .*{part}.*: PASS \(", output):
        yield Outcome(chosen.name, Verdict.PASSED, seconds=seconds)
    else:
        yield Outcome(chosen.name, Verdict.FAILED, _why(output), seconds)


def _why(output: str) -> str:
    """What the program says of the first test that failed: a line that begins with ###, and the one after it."""
    found = re.search(r"^### .*\n.*", output, re.MULTILINE)
    return found[0] if found else output[-300:]


def _skipped(tests: Path) -> Iterator[Outcome]:
    """Every test of the table in test.c that is not run, with the reason; of those that are run, some parts."""
    run = {chosen.number for chosen in RUN} | {name[:4] for name in NOT_RUN if "/" in name}
    for name, flags in _LISTED.findall((tests / "test.c").read_text()):
        if name == "NAME" or (name[:4] in run and "TEST_F_LOCAL" not in flags):
            continue
        yield Outcome(name, Verdict.SKIPPED, _reason(tests, name, flags))
    for name, reason in NOT_RUN.items():
        if "/" in name:
            yield Outcome(name, Verdict.SKIPPED, reason)


def _chosen(name: str) -> Chosen:
    """A test that was skipped, or a part of one, to be run."""
    test, _, part = name.partition("/")
    return Chosen(test, part, "noautocreate" if test in WITHOUT_AUTOCREATE else "default")


def _reason(tests: Path, name: str, flags: str) -> str:
    if name in NOT_RUN:
        return NOT_RUN[name]
    if "TEST_F_LOCAL" in flags:
        return "asks no server, or librdkafka's own mock of one"
    source = "".join(path.read_text(errors="replace") for path in tests.glob(f"{name[:4]}*.c*"))
    reason = next((reason for word, reason in RULES if re.search(word, name + "\n" + source)), None)
    if reason is None:
        raise UnavailableError(f"nobody has looked at its test {name}: another version than was looked at?")
    return reason
