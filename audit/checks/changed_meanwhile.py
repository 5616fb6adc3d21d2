# SPDX-License-Identifier: Apache-2.0
"""What changed while the log was read."""

from audit.checks.base import FOUND_COLUMNS, Check, differing, sighted
from audit.facts.facts import Facts


def _query(facts: Facts) -> str:
    gone, changed = sighted("changed_meanwhile")(facts), differing("meanwhile")(facts)
    return f"{gone} union all select {FOUND_COLUMNS} from ({changed})" if changed else gone


CHECK = Check(
    name="changed_meanwhile",
    severity="info",
    about="This changed while the log was read, so that nothing can be said of it.",
    query=_query,
)
