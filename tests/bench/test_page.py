# SPDX-License-Identifier: Apache-2.0
"""RESULTS.md keeps what other commands have written."""

from pathlib import Path

from bench.page import write_part


def test_a_part_takes_the_place_of_the_one_with_its_title(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    write_part(page, "# One\n\nold\n\n## Within\n\n| a |\n")
    write_part(page, "# Two\n\nkept\n")
    write_part(page, "# One\n\nnew\n\n")
    assert page.read_text() == "# One\n\nnew\n\n# Two\n\nkept\n"
    write_part(page, "# Two\n\nrenewed")
    assert page.read_text() == "# One\n\nnew\n\n# Two\n\nrenewed\n"
