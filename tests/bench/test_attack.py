# SPDX-License-Identifier: Apache-2.0
"""`python -m bench attack` on a small node."""

import json

import pytest

from bench.attack import cli
from bench.attack.frames import Size
from bench.attack.scenarios import all_scenarios
from tests.support.documented import Documented

pytestmark = pytest.mark.process


def test_an_attack_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["list_groups", "--groups", "20", "--topics", "5", "--connections", "1", "--seconds", "0.3"]
    assert cli.main(arguments) == 0
    *_, row = capsys.readouterr().out.splitlines()
    assert row.startswith("list_groups ")
    assert row.count(" ms") == 5


def test_every_attack_says_what_it_is_and_has_requests() -> None:
    for name, scenario in all_scenarios().items():
        assert scenario.__doc__, name
        frames = scenario.frames(Size(groups=10, topics=10))
        for frame in frames:
            assert int.from_bytes(frame[:4], "big") == len(frame) - 4, name


def test_workers_that_get_large_requests_are_not_killed(documented: Documented) -> None:
    (command,) = documented.commands
    found = json.loads(documented.run(command, {"workers": "workers --requests 2"}).stdout)
    assert (found["requests"], found["workers_killed"]) == (2, 0)
    assert found["commits"] > 0
