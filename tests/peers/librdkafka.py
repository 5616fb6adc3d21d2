# SPDX-License-Identifier: Apache-2.0
"""librdkafka's integration tests, from npm: Confluent's JavaScript client holds all of librdkafka's sources."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.peers.fetching import UnavailableError, gently, locked, npm_package, require, run_command
from tests.peers.librdkafka_tests import CONFIGS, DATA, NOT_RUN, RULES, RUN, Chosen
from tests.peers.outcome import Outcome, Report, Verdict
from tests.support.target import keeps_records, running_target

NAME: Final = "librdkafka"
TOPICS_TOOL: Final = Path(__file__).with_name("kafka_topics.py")
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
TEST_TIMEOUT_S: Final = 180.0

WITH_RECORDS: Final = (DATA, CONFIGS)
"""Reasons that are none where there are records."""

_LISTED: Final = re.compile(r"^\s*_TEST\((\w+),\s*([^,)]+)", re.MULTILINE)
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
    skipped = list(_skipped(tests))
    chosen = RUN
    if keeps_records():
        chosen = (*RUN, *(_chosen(outcome.name) for outcome in skipped if outcome.reason in WITH_RECORDS))
        skipped = [outcome for outcome in skipped if outcome.reason not in WITH_RECORDS]
    with (
        running_target(work / "default", SETTINGS["default"]) as default,
        running_target(work / "noautocreate", SETTINGS["noautocreate"]) as noautocreate,
    ):
        bootstraps = {"default": default.bootstrap, "noautocreate": noautocreate.bootstrap}
        suite = _Suite(tests, work, _tools(work / "tools"), bootstraps)
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            outcomes = [each for found in pool.map(lambda each: _run(suite, each), chosen) for each in found]
    return Report(NAME, version, [*outcomes, *skipped])


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
    """A directory as Kafka's, with the one of its tools that the tests call."""
    script = directory / "bin" / "kafka-topics.sh"
    script.parent.mkdir(parents=True)
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -W ignore "{TOPICS_TOOL}" "$@"\n')
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
    passed = list(_passed(chosen, output))
    if done.returncode or not passed:
        return [Outcome(chosen.name, Verdict.FAILED, _why(output), seconds)]
    return [Outcome(name, Verdict.PASSED, seconds=seconds) for name in passed]


def _passed(chosen: Chosen, output: str) -> Iterator[str]:
    """What passed: of a part of a test it must be said by name, as a name that none has lets everything pass."""
    if chosen.subtest:
        if re.search(rf"\[ {chosen.subtest}.*: PASS \(", output):
            yield chosen.name
        return
    yield from re.findall(rf"^\| ({chosen.number}_\w+) +\| +PASSED", output, re.MULTILINE)


def _why(output: str) -> str:
    """What the program says of the first test that failed: a line that begins with ###, and the one after it."""
    found = re.search(r"^### .*\n.*", output, re.MULTILINE)
    return found[0] if found else output[-300:]


def _skipped(tests: Path) -> Iterator[Outcome]:
    """Every test of the table in test.c that is not run, with the reason; of those that are run, some parts."""
    run = {chosen.number for chosen in RUN}
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
    return Chosen(test, part)


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
