# SPDX-License-Identifier: Apache-2.0
"""The base of small structs that exist in large numbers: messages, records, headers.

They never change, so that caches can share them. They hold no cycles, so the garbage collector does not track them,
which saves 16 bytes each, and its walk over all of them. mypyc drops the keyword arguments of a class statement, but a
base that is not compiled passes them on; subclasses repeat `frozen=True`, for mypy.
"""

import msgspec


class FrozenStruct(msgspec.Struct, frozen=True, gc=False):
    """A struct that never changes and is in no reference cycle."""
