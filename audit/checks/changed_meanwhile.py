# SPDX-License-Identifier: Apache-2.0
"""The check for changes while the log was read."""

from audit.checks.base import FOUND_COLUMNS, Check, differences_query, sightings_query
from audit.facts.log_facts import Facts


def _query(facts: Facts) -> str:
    gone, changed = sightings_query("changed_meanwhile")(facts), differences_query("meanwhile")(facts)
    return f"{gone} union all select {FOUND_COLUMNS} from ({changed})" if changed else gone


CHECK = Check(
    name="changed_meanwhile",
    severity="info",
    about="This changed while the log was read, so that the audit cannot compare it.",
    todo="Nothing, unless it comes every time: then audit a copy or a snapshot.",
    query=_query,
)
