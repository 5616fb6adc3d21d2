# SPDX-License-Identifier: Apache-2.0
"""The generated codecs are what the generator writes, and the generator refuses what it does not know."""

import subprocess
import sys
from pathlib import Path

import pytest

from protocol.codegen import __main__ as codegen
from protocol.codegen.schema import UnsupportedSchema, Versions, load, snake_case


@pytest.mark.process
def test_the_checked_in_codecs_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "protocol.codegen", "--check"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_check_names_what_is_missing_changed_or_left_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert codegen.main([], tmp_path) == 0
    assert codegen.main(["--check"], tmp_path) == 0

    (tmp_path / "heartbeat.py").unlink()
    (tmp_path / "join_group.py").write_text("changed")
    (tmp_path / "produce.py").write_text("left over")
    assert codegen.main(["--check"], tmp_path) == 1
    named = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
    assert named == ["heartbeat.py", "join_group.py", "produce.py"]
    assert not (tmp_path / "heartbeat.py").exists()

    assert codegen.main([], tmp_path) == 0
    assert codegen.main(["--check"], tmp_path) == 0
    assert not (tmp_path / "produce.py").exists()


@pytest.mark.parametrize("message", ["FetchRequest", "ApiVersionsResponse"])
def test_a_schema_with_what_the_generator_does_not_know_is_refused(message: str) -> None:
    with pytest.raises(UnsupportedSchema):
        load(message)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("0-7", [0, 7], [-1, 8]),
        ("3", [3], [2, 4]),
        ("3+", [3, 30_000], [2]),
        ("none", [], [-1, 0, 1]),
        (None, [], [-1, 0, 1]),
    ],
)
def test_versions_are_read_in_kafkas_notation(
    text: str | None, inside: list[int], outside: list[int]
) -> None:
    versions = Versions.parse(text)

    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)


def test_field_names_are_kafka_pythons() -> None:
    assert snake_case("GenerationIdOrMemberEpoch") == "generation_id_or_member_epoch"
