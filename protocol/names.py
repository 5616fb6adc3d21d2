# SPDX-License-Identifier: Apache-2.0
"""Types for what is a number or a string to Python, so that mypy finds one in the place of another.

They are given where a value is born: where a message or a record is decoded, a file's name is read, the log grows. In
modules that mypyc compiles that costs nothing; elsewhere it is a call, which no loop over records should make.
"""

from typing import NewType

GroupId = NewType("GroupId", str)
MemberId = NewType("MemberId", str)

Partition = NewType("Partition", int)
"""Of the offsets topic, from 0 on; not one of a topic that a group reads."""
Offset = NewType("Offset", int)
"""A place in a partition of the offsets topic; not an offset that a group has committed."""
Epoch = NewType("Epoch", int)
"""Of a partition's leader: it grows with each one."""
