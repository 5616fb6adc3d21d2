# SPDX-License-Identifier: Apache-2.0
"""franz-go's tests of its client, from the Go module proxy: modules hold their tests."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.peers.differing import explained
from tests.peers.fetching import UnavailableError, gently, locked, require, run_command
from tests.peers.logins import logging_in
from tests.peers.outcome import Outcome, Report, Verdict
from tests.support.target import keeps_records, running_target

NAME: Final = "franz-go"
MODULE: Final = Path(__file__).with_name("franz_go_module")
PACKAGE: Final = "github.com/twmb/franz-go/pkg/kgo"
SETTINGS: Final[dict[str, str | int]] = {"group.initial.rebalance.delay.ms": 0}

BUILD_TIMEOUT_S: Final = 600.0
RUN_TIMEOUT_S: Final = 900.0
SIDE_BY_SIDE: Final = 4
"""How many of those that can run beside others do so: they wait for most of the time."""
RECORDS: Final = 20_000
"""What its tests of whole chains of groups move, instead of half a million."""

ASKING: Final = (
    "TestUnknownGroupOffsetFetchPinned",
    "TestPing",
    "TestIssue1034",
    "TestConsumeTopicRetrieval_Many",
    "TestConsumeRegex",
    "TestIssue648",
    "TestIssue810",
    "TestIssue831",
)
"""The tests that ask a server and need no produced data."""

DATA: Final = "needs produced data"
SHARE: Final = "share groups, which are not coordinated here"
SKIPPED: Final = {
    **dict.fromkeys(
        (
            "TestIssue325",
            "TestIssue337",
            "TestDirectPartitionPurge",
            "TestIssue434",
            "TestAddRemovePartitions",
            "TestPauseIssue489",
            "TestPauseIssueOct2023",
            "TestIssue523",
            "TestIssue865",
            "TestIssueFetchLargerThanBrokerMaxReadBytes",
            "TestPooling",
            "TestGroupSimple",
            "TestHookPollStart",
            "TestConsumeMaxDecompressBatchBytes",
            "TestGroupETL",
            "TestTxnEtl",
            "TestClient_Produce",
            "TestIssue769",
            "TestIssueProduceBrokerTooOldFailsRecords",
            "TestIssueProduceSyncManualPartitionNegativeDoesNotPanic",
            "TestClient_ProduceLargeMessages",
        ),
        DATA,
    ),
    "TestSCRAMAuth": "needs SASL",
    "TestSCRAMAuthBadCredentials": "needs SASL",
    **dict.fromkeys(
        (
            "TestShareGroup",
            "TestShareGroupETL",
            "TestShareGroupAckOnClose",
            "TestShareGroupOffsetsAdmin",
            "TestConsumeRegexShareSkipsInternal",
        ),
        SHARE,
    ),
    "Test848RegexBrokerResolves": "the consumer protocol of KIP-848, which is not coordinated here",
}
ASKS_NOBODY: Final = "asks no server"
_RESULT: Final = re.compile(r"^--- (PASS|FAIL|SKIP): (\w+) \(([\d.]+)s\)$", re.MULTILINE)
_VERDICTS: Final = {"PASS": Verdict.PASSED, "FAIL": Verdict.FAILED, "SKIP": Verdict.SKIPPED}


def run(work: Path) -> Report:
    """Run the tests against a server under `work`. Raises UnavailableError."""
    version, binary, source = _built()
    listed = [
        name
        for name in run_command([str(binary), "-test.list", "^Test"], "it lists no tests").split()
        if name
    ]
    with running_target(work / "server", SETTINGS) as server, logging_in(work / "logins") as logins:
        env = {
            **os.environ,
            "KGO_SEEDS": server.bootstrap,
            "KGO_TEST_RF": "1",
            "KGO_TEST_RECORDS": str(RECORDS),
            "KGO_LOG_LEVEL": "none",
        }
        if logins is not None:
            env |= {"KGO_TEST_SCRAM_SEEDS": logins.bootstrap, "KGO_TEST_SCRAM": ":".join(logins.user)}
        chosen = f"^({'|'.join(_asking())})$"
        limits = ["-test.timeout", f"{RUN_TIMEOUT_S:g}s", "-test.parallel", str(SIDE_BY_SIDE)]
        command = [str(binary), "-test.v", "-test.run", chosen, *limits]
        done = subprocess.run(
            gently(command),
            cwd=source,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    output = done.stdout + done.stderr
    (work / "output.txt").write_text(output)
    return Report(NAME, version, [*_outcomes(output), *_skipped(listed)])


def _built() -> tuple[str, Path, Path]:
    """The version, the program that runs the tests, and the directory of their sources."""
    require("go", "it fetches and builds them")
    with locked("franz-go") as target:
        target.mkdir(exist_ok=True)
        for name in ("go.mod", "go.sum"):
            shutil.copyfile(MODULE / name, target / name)
        said = run_command(
            ["go", "list", "-f", "{{.Module.Version}} {{.Dir}}", PACKAGE], "go cannot fetch it", cwd=target
        )
        version, source = said.split()
        binary = target / f"kgo-{version}.test"
        if not binary.exists():
            command = ["go", "test", "-c", "-o", str(binary), PACKAGE]
            run_command(command, "go cannot build its tests", cwd=target, timeout_s=BUILD_TIMEOUT_S)
        return version, binary, Path(source)


def _asking() -> tuple[str, ...]:
    """The tests to be run: where there are records, all that ask a server."""
    if not keeps_records():
        return ASKING
    left_out = explained(NAME)
    return tuple(name for name in (*ASKING, *SKIPPED) if name not in left_out)


def _outcomes(output: str) -> Iterator[Outcome]:
    found = {match[2]: match for match in _RESULT.finditer(output)}
    for name in _asking():
        if name not in found:
            yield Outcome(name, Verdict.FAILED, f"it did not end: {output[-300:]}")
            continue
        verdict = _VERDICTS[found[name][1]]
        reason = "" if verdict is Verdict.PASSED else _last_words(output, found[name].start())
        yield Outcome(name, verdict, reason, float(found[name][3]))


def _last_words(output: str, start: int) -> str:
    return " / ".join(output[:start].strip().splitlines()[-3:])


def _skipped(listed: list[str]) -> Iterator[Outcome]:
    if missing := {*ASKING, *SKIPPED} - set(listed):
        raise UnavailableError(
            f"it has no tests {', '.join(sorted(missing))}: another version than was looked at?"
        )
    reasons = {**SKIPPED, **explained(NAME)}
    for name in listed:
        if name not in _asking():
            yield Outcome(name, Verdict.SKIPPED, reasons.get(name, ASKS_NOBODY))
