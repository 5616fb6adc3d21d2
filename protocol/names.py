# SPDX-License-Identifier: Apache-2.0
"""Types for what is a number to Python, so that mypy finds one in the place of another.

They are given where a value is born: where it is computed, decoded, or read off a file's name. In modules that mypyc
compiles that costs nothing; elsewhere it is a call, which no loop over records should make.
"""

from typing import Final, NewType

Partition = NewType("Partition", int)
"""Of the offsets topic, from 0 on; not one of a topic that a group reads."""

GroupId = NewType("GroupId", str)
"""`group.id` of a consumer."""

BOOK_PREFIX: Final = "__groupkeeper.adopted-"
"""So begin the ids of groups that no client has: they hold marks of the other groups of their partition."""

MemberId = NewType("MemberId", str)
"""`member.id`, which a coordinator gives out; empty in the request of a member that has none yet."""

Offset = NewType("Offset", int)
"""Of a record: in a log of the offsets topic, or in a partition that a group reads; no position in a file."""

LeaderEpoch = NewType("LeaderEpoch", int)
"""Of a partition's leader: each new one has a larger one; -1 where it is not known."""
