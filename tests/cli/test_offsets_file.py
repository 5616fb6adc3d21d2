# SPDX-License-Identifier: Apache-2.0
"""Files of offsets: read as a whole, or refused with the line."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.cli.cluster.model import CommittedOffset
from coordinator.cli.errors import CommandError
from coordinator.cli.resets.offsets_file import GroupOffsets, get_group_offsets, read_offsets, to_csv


def test_what_kafkas_tool_exports_is_read(tmp_path: Path) -> None:
    file = tmp_path / "plan"
    file.write_bytes(b'"jobs",0,1200345\r\njobs,3, 0\n\n"a ""b"", c",2147483647,9223372036854775807\n')
    rows = [
        CommittedOffset("jobs", 0, 1_200_345),
        CommittedOffset("jobs", 3, 0),
        CommittedOffset('a "b", c', 2**31 - 1, 2**63 - 1),
    ]
    assert read_offsets(file) == {None: rows}


def test_lines_with_groups_are_read_by_group(tmp_path: Path) -> None:
    file = tmp_path / "plan"
    file.write_text('"g","jobs",0,5\nh,jobs,0,6\ng,jobs,1,7\n')
    found = read_offsets(file)
    assert found == {
        "g": [CommittedOffset("jobs", 0, 5), CommittedOffset("jobs", 1, 7)],
        "h": [CommittedOffset("jobs", 0, 6)],
    }
    assert get_group_offsets(file, found, "h") == [CommittedOffset("jobs", 0, 6)]
    with pytest.raises(CommandError, match="no offsets of group i"):
        get_group_offsets(file, found, "i")


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("g,jobs,0,61\ng,jobs,1,62\n", "g"),
        ('"g","jobs",0,61\n"g","jobs",1,62\n', "g"),
        ("jobs,0,61\njobs,1,62\n", None),
        (
            '[{"group":"g","offsets":[{"topic":"jobs","partition":0,"offset":61},'
            '{"topic":"jobs","partition":1,"offset":62}]}]',
            "g",
        ),
        ('"\ufeffg",jobs,0,61\n"\ufeffg",jobs,1,62\n', "\ufeffg"),
    ],
)
def test_the_byte_order_mark_of_a_spreadsheet_is_no_part_of_a_name(
    tmp_path: Path, text: str, group: str | None
) -> None:
    file = tmp_path / "plan"
    rows = [CommittedOffset("jobs", 0, 61), CommittedOffset("jobs", 1, 62)]
    for written in (text.encode(), b"\xef\xbb\xbf" + text.encode()):
        file.write_bytes(written)
        assert read_offsets(file) == {group: rows}


NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), min_size=1)
ROWS = st.lists(
    st.builds(CommittedOffset, NAMES, st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)),
    min_size=1,
    unique_by=lambda row: row.place,
)


@given(st.dictionaries(NAMES, ROWS, min_size=1))
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, groups: dict[str, Any]
) -> None:
    file = tmp_path_factory.mktemp("files") / "offsets"
    written = [GroupOffsets(group, rows) for group, rows in groups.items()]
    file.write_text(to_csv(written, named=True))
    assert read_offsets(file) == groups
    file.write_bytes(msgspec.json.encode(written))
    assert read_offsets(file) == groups
    one = written[0]
    file.write_text(to_csv([one], named=False))
    assert read_offsets(file) == {None: one.offsets}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("jobs,0,5\njobs,0\n", "line 2: expected topic,partition,offset, found 2 values"),
        ("jobs,0,5\ng,jobs,0,5\n", "line 2: expected topic,partition,offset, found 4 values"),
        ("g,jobs,0,5\njobs,0,5\n", "line 2: expected group,topic,partition,offset, found 3 values"),
        ("g,h,jobs,0,5\n", "line 1: expected topic,partition,offset, found 5 values"),
        ("g,jobs,0,5\ng,jobs,0,5\n", "line 2: jobs-0 appears twice"),
        ('[{"group": "g"}]', "required field `offsets`"),
        (
            '[{"group": "g", "offsets": [{"topic": "t", "partition": 0, "offset": -1}]}]',
            "t-0, offset -1: out of",
        ),
        ('[{"group": "g", "offsets": []}]', "it contains no offsets"),
        ('[{"group": "g", "offsets": []}, {"group": "g", "offsets": []}]', "appears twice"),
        ("topic,partition,offset\n", "line 1: partition 'partition' is not a whole number"),
        ("jobs,0,-1\n", "line 1: offset '-1' is not a whole number"),
        ("jobs,0,9223372036854775808\n", "not a whole number from 0 to 9223372036854775807"),
        ("jobs,2147483648,0\n", "not a whole number from 0 to 2147483647"),
        ("jobs,0," + 5_000 * "9" + "\n", "not a whole number"),
        ("jobs,0,\u0665\n", "not a whole number"),
        (",0,5\n", "line 1: the topic has no name"),
        ("jobs,0,5\njobs,0,6\n", "line 2: jobs-0 appears twice"),
        ('"jobs,0,5\n', "unexpected end of data"),
        ("", "it contains no offsets"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_with_its_line(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "plan"
    file.write_text(text)
    with pytest.raises(CommandError) as caught:
        read_offsets(file)
    assert reason in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_file_that_is_not_there_or_no_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        read_offsets(tmp_path / "nope")
    (tmp_path / "bytes").write_bytes(b"jobs,0,\xff\n")
    with pytest.raises(CommandError, match="codec"):
        read_offsets(tmp_path / "bytes")
