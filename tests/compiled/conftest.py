# SPDX-License-Identifier: Apache-2.0
"""For tests of what is installed."""

import pytest

from bench.installed import is_installed
from tests.support.missing import skip_or_fail


@pytest.fixture(scope="session")
def made_from_this_tree() -> None:
    """What is installed was made from this tree as it stands."""
    if not is_installed():
        skip_or_fail("the installed groupkeeper was not made from this tree: make install")
