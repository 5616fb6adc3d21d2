# SPDX-License-Identifier: Apache-2.0
"""Every check tells of the log that was damaged for it, and none of those that were not."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from audit.options import AuditOptions
from audit.report.model import Report
from audit.run import audit
from tests.audit.damaged import ALSO, MUST_FLAG, MUST_PASS, write_all
from tests.audit.logs import NOW, PARTITIONS


class Audited(msgspec.Struct):
    """An audit of all the logs, damaged and whole."""

    report: Report
    out: Path
    places: Mapping[str, int]

    def checks_in(self, name: str) -> set[str]:
        """The checks that told of this log."""
        return {finding.check for finding in self.report.findings if finding.partition == self.places[name]}


@pytest.fixture(scope="module")
def audited(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    work = tmp_path_factory.mktemp("damaged")
    places = write_all(work / "log")
    options = AuditOptions(log_dirs=(str(work / "log"),), out=str(work / "out"), as_of_ms=NOW)
    return Audited(audit(spark, options), work / "out", places)


@pytest.mark.parametrize("name", MUST_FLAG)
def test_damage_is_told(audited: Audited, name: str) -> None:
    check, _ = MUST_FLAG[name]
    assert audited.checks_in(name) - ALSO.get(name, set()) == {check}


@pytest.mark.parametrize("name", MUST_PASS)
def test_what_is_whole_passes(audited: Audited, name: str) -> None:
    assert audited.checks_in(name) == set()


def test_nothing_is_said_of_all_the_other_logs(audited: Audited) -> None:
    told = {finding.partition for finding in audited.report.findings}
    assert told == set(range(len(MUST_FLAG)))
    assert audited.report.run.partitions == PARTITIONS
