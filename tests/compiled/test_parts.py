# SPDX-License-Identifier: Apache-2.0
"""Compiled parts do what their sources do; test_whole.py has the rest, so that both can run side by side."""

from pathlib import Path

import pytest

from tests.compiled.suites import PARTS, run_on_the_installed


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("made_from_this_tree")
def test_compiled_parts_pass_the_tests_of_their_sources(tmp_path: Path) -> None:
    run_on_the_installed(PARTS, tmp_path)
