# SPDX-License-Identifier: Apache-2.0
"""Leader epochs that go back."""

from pyspark.sql import DataFrame

from audit.checks.base import Check, by_file, sighted
from audit.checks.ranges import between
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    across = between(
        facts,
        "first_epoch >= 0 and first_epoch < earlier_epoch",
        "'leader epoch '", "first_epoch", "' after '", "earlier_epoch",
    )  # fmt: skip
    return by_file(sighted("leader_epoch_back")(facts).unionByName(across))


CHECK = Check(
    name="leader_epoch_back",
    severity="error",
    about="A former leader wrote after its successor: there were two leaders.",
    find=_find,
)
