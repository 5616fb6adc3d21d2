# SPDX-License-Identifier: Apache-2.0
"""The file of `groups set-offsets`: read as a whole, or refused with its line."""

from pathlib import Path

import pytest

from coordinator.cli.errors import CommandError
from coordinator.cli.resets.offsets_file import read_offsets


def test_what_kafkas_tool_exports_is_read(tmp_path: Path) -> None:
    file = tmp_path / "plan"
    file.write_bytes(b'"jobs",0,1200345\r\njobs,3, 0\n\n"a ""b"", c",2147483647,9223372036854775807\n')
    assert read_offsets(file) == {
        ("jobs", 0): 1_200_345,
        ("jobs", 3): 0,
        ('a "b", c', 2**31 - 1): 2**63 - 1,
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("jobs,0,5\njobs,0\n", "line 2: expected topic,partition,offset and not 2 values"),
        ("group,jobs,0,5\n", "line 1: expected topic,partition,offset and not 4 values"),
        ("topic,partition,offset\n", "line 1: partition 'partition' is no whole number"),
        ("jobs,0,-1\n", "line 1: offset '-1' is no whole number"),
        ("jobs,0,9223372036854775808\n", "no whole number from 0 to 9223372036854775807"),
        ("jobs,2147483648,0\n", "no whole number from 0 to 2147483647"),
        ("jobs,0," + 5_000 * "9" + "\n", "no whole number"),
        ("jobs,0,\u0665\n", "no whole number"),
        (",0,5\n", "line 1: the topic has no name"),
        ("jobs,0,5\njobs,0,6\n", "line 2: jobs-0 is there twice"),
        ('"jobs,0,5\n', "unexpected end of data"),
        ("", "there are no offsets in it"),
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
