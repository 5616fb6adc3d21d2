# SPDX-License-Identifier: Apache-2.0
"""Queries that join offsets with the groups that own them."""

from typing import Final

from audit.facts.log_facts import Facts
from protocol.newtypes import LEDGER_PREFIX

NO_LEDGER: Final = f"not startswith(group, '{LEDGER_PREFIX}')"
"""The condition that leaves out the marks of groups that were taken over from a cluster.

These marks are offsets that do not expire and belong to no group.
"""

OWNED: Final = f"""
    select live_offsets.*, last_position as position, state, protocol_type, state_timestamp from live_offsets
    left anti join other_groups using (partition, group)
    left join (select partition, group, state, protocol_type, state_timestamp from live_groups)
        using (partition, group)
    where {NO_LEDGER}
"""
"""The existing offsets, with their group's `state` (null: not stored), `protocol_type`, `state_timestamp`.

Groups of other protocols than the classic one, of which this audit knows only the name, are left out.
"""

_SIMPLE: Final = "(state is null or coalesce(protocol_type, '') = '')"
EXPIRING: Final = f"""
    select *, if(not {_SIMPLE} and state_timestamp >= 0, state_timestamp, commit_timestamp) as counts_from
    from ({OWNED}) where {_SIMPLE} or state = 'Empty'
"""
"""The offsets that expire, with the time `counts_from`; as in Kafka (ClassicGroup.offsetExpirationCondition).

A group with members keeps its offsets. (It loses those of topics that none of its members reads, which is not checked
here: subscriptions are not among the columns.)
"""


def overdue_expiry_cutoff_ms(facts: Facts) -> int:
    """Return the time (ms): anything older has been past its retention for so long that two expiry jobs were due."""
    limits = facts.options.limits
    return (
        facts.options.as_of_ms - limits.offsets_retention_ms - 2 * limits.offsets_retention_check_interval_ms
    )
