# SPDX-License-Identifier: Apache-2.0
"""A node of compiled parts does what one of their sources does."""

from pathlib import Path

import pytest

from tests.compiled.suites import WHOLE, run_on_the_installed


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("made_from_this_tree")
def test_a_compiled_node_passes_the_tests_of_its_sources(tmp_path: Path) -> None:
    run_on_the_installed(WHOLE, tmp_path)
