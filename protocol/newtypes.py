# SPDX-License-Identifier: Apache-2.0
"""Distinct types for numbers and strings, so that mypy finds one used as another.

A value gets its type where it is computed, decoded, or read from a file's name. In modules that mypyc compiles that
costs nothing; elsewhere it is a call, which no loop over records should make.
"""

from typing import Final, NewType

Partition = NewType("Partition", int)
"""A partition of the offsets topic, from 0 on; not one of a topic that a group reads."""

GroupId = NewType("GroupId", str)
"""The `group.id` of a consumer."""

LEDGER_PREFIX: Final = "__groupkeeper.adopted-"
"""The prefix of ids of groups that no client uses: they hold marks of the other groups of their partition."""

MemberId = NewType("MemberId", str)
"""A `member.id`, which a coordinator gives out; empty in the request of a member that has none yet."""

Offset = NewType("Offset", int)
"""The offset of a record: in a log of the offsets topic, or in a partition that a group reads; no file position."""

LeaderEpoch = NewType("LeaderEpoch", int)
"""The epoch of a partition's leader: each new leader has a larger one; -1 if it is not known."""
