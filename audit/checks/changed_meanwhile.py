# SPDX-License-Identifier: Apache-2.0
"""What changed while the log was read."""

from pyspark.sql import DataFrame

from audit.checks.base import Check, differing, sighted
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    return sighted("changed_meanwhile")(facts).unionByName(differing("meanwhile")(facts))


CHECK = Check(
    name="changed_meanwhile",
    severity="info",
    about="This changed while the log was read, so that nothing can be said of it.",
    find=_find,
)
