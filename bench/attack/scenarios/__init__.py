# SPDX-License-Identifier: Apache-2.0
"""One module for each attack: its docstring says what is sent, and `frames(size)` makes the requests.

`frames` gets how many groups and topics the node has, and returns whole frames, lengths included, which every
attacking connection sends again and again, all at once, reading the answers. A connection that is closed is opened
anew.
"""

import importlib
import pkgutil
from types import ModuleType


def all_scenarios() -> dict[str, ModuleType]:
    """The attacks by name."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__))
    return {name: importlib.import_module(f"{__name__}.{name}") for name in names}
