# SPDX-License-Identifier: Apache-2.0
"""Faults for tests that try each operation in turn."""

from typing import Final

import pytest

from tests.storage.faulty import Fault

EVERY_FAULT: Final = [
    pytest.param(Fault.CRASH, marks=[pytest.mark.slow, pytest.mark.gate]),
    pytest.param(Fault.FULL, marks=pytest.mark.slow),
    pytest.param(Fault.IO_ERROR, marks=pytest.mark.slow),
]
"""`make test` lets the process be killed at each operation, `make test-all` also lets the operation fail."""
