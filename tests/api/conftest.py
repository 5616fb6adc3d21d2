# SPDX-License-Identifier: Apache-2.0
"""A node to ask."""

from pathlib import Path

import pytest

from tests.api.asking import FakeNode


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path)
