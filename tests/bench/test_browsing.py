# SPDX-License-Identifier: Apache-2.0
"""A node with some groups is asked every question, and the pictures of its page are taken."""

import re
import struct
from pathlib import Path

import pytest

from bench import cli
from bench.browser import find_chromium
from bench.browsing import QUESTIONS
from bench.screenshots import PICTURES
from bench.stocked import ENDS, group_names
from tests.support.documented import Documented
from tests.support.missing import skip_or_fail

IMAGES = Path(__file__).parents[2] / "docs" / "images"


@pytest.mark.parametrize("groups", [*PICTURES])
def test_the_names_of_groups_are_different(groups: int) -> None:
    names = group_names(groups)
    assert len(set(names)) == len(names) == groups
    assert {ENDS, "billing"} <= set(names)


@pytest.mark.process
@pytest.mark.slow
def test_each_question_has_a_line(documented: Documented) -> None:
    (command,) = documented.commands
    few = {"--groups 100000": "--groups 300", "--rounds 10": "--rounds 2", " --write": ""}
    _, _, *lines = documented.run(command, few).stdout.splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[0] for row in cells] == list(QUESTIONS)
    assert all(float(number) > 0 for row in cells for number in row[1:5])


@pytest.mark.process
@pytest.mark.slow
def test_pictures_are_taken(tmp_path: Path) -> None:
    if find_chromium() is None:
        skip_or_fail("there is no Chromium to take pictures with")
    assert cli.main(["screenshots", str(tmp_path), "--groups", "3"]) == 0
    for picture in PICTURES[3]:
        data = (tmp_path / f"{picture.name}.png").read_bytes()
        assert struct.unpack(">II", data[16:24]) == picture.size
        assert len(data) > 20_000, "an empty page of that size has 5,000"


def test_the_documentation_has_every_picture_and_shows_some() -> None:
    named = {picture.name for pictures in PICTURES.values() for picture in pictures}
    assert {file.stem for file in IMAGES.glob("*.png")} == named
    pages = [*IMAGES.parent.glob("*.md"), IMAGES.parents[1] / "README.md"]
    shown = {name for page in pages for name in re.findall(r"images/([\w-]+)\.png", page.read_text())}
    assert shown == named
