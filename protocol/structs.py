# SPDX-License-Identifier: Apache-2.0
"""The base of the small structs that there are many of: messages, records, headers.

They never change, so that caches can share them. They hold no cycles, so the garbage collector need not know them: that
saves 16 bytes each, and its walk over all of them. mypyc drops what a class statement says beside its bases, but a base
that is not compiled passes it on; `frozen=True` is said again where one inherits, for mypy.
"""

import msgspec


class Frozen(msgspec.Struct, frozen=True, gc=False):
    """A struct that never changes, and is no part of a reference cycle."""
