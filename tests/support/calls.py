# SPDX-License-Identifier: Apache-2.0
"""Counts the calls of a Python function while a test runs, without changing anything."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any


@contextmanager
def calls_of(name: str, module: ModuleType) -> Iterator[list[dict[str, Any]]]:
    """The arguments of each call of the function `name` of a module, made in this thread in the block.

    The function must not be compiled: the interpreter says nothing of calls between compiled ones.
    """
    code = vars(module)[name].__code__
    calls: list[dict[str, Any]] = []

    def look(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code is code:
            calls.append(dict(frame.f_locals))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield calls
    finally:
        sys.setprofile(before)
