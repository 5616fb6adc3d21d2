# SPDX-License-Identifier: Apache-2.0
"""The version of this distribution; the build reads it from here."""

from importlib.util import find_spec

__version__ = "0.1.0"


def is_compiled() -> bool:
    """Return whether the code that every request passes runs compiled (hatch_build.py), not as Python."""
    found = find_spec("protocol.wire")
    return found is not None and found.origin is not None and not found.origin.endswith(".py")
