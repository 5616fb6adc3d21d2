# SPDX-License-Identifier: Apache-2.0
"""Documented commands that no test of their subject runs, on nodes, directories and files of the test's own.

Those that need something larger are run where that is: a fresh clone, a gateway, a Kafka (`tests/documented.py`).
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cli.test_style import commands as commands_of_groupkeeper
from tests.support import raw
from tests.support.documented import Documented
from tests.support.missing import skip_or_fail
from tests.support.pages import ROOT
from tests.support.service import Service, serving
from tests.support.tls import TestAuthority
from tests.workers.conftest import make_nodes
from tests.workers.nodes import Nodes

__all__ = ["make_nodes"]

END_GROUP: Final = "groupkeeper.end.group"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(tmp_path / "service") as service:
        yield service


def at(service: Service) -> dict[str, str]:
    """The variables with which a command asks this node."""
    return {"GROUPKEEPER_BOOTSTRAP": service.bootstrap}


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    raw.wait_for_coordinator(bootstrap, group)
    raw.commit_offsets(bootstrap, group, topic, {0: offset})


def test_a_group_is_looked_at_reset_and_deleted(documented: Documented, service: Service) -> None:
    describe, describe_offsets, reset, expiring, delete = documented.commands
    raw.create_topic(service.bootstrap, "jobs", 1, configs={END_GROUP: "jobs-made"})
    commit(service.bootstrap, "jobs-made", "jobs", 9)
    commit(service.bootstrap, "orders", "jobs", 4)
    here = at(service)
    assert "Empty" in documented.run(describe, {"GROUP": "orders"}, variables=here).stdout
    shown = documented.run(describe_offsets, {"GROUP": "orders"}, variables=here).stdout
    assert ["jobs", "0", "4", "9", "5"] in [line.split()[:5] for line in shown.splitlines()]
    documented.run(reset, {"GROUP": "orders", "TOPIC:PARTITION": "jobs:0", "N": 5}, variables=here)
    assert raw.fetch_offsets(service.bootstrap, "orders") == {("jobs", 0): 5}
    node = f"--node 127.0.0.1:{service.metrics_port}"
    told = documented.run(expiring, {"7d": f"7d {node}"}).stdout
    assert "2 offsets in 2 groups will expire within 7d" in told
    documented.run(delete, {"GROUP": "orders"}, variables=here)
    assert set(raw.list_groups(service.bootstrap)) == {"jobs-made"}


def test_a_topic_gets_an_end_group(documented: Documented, service: Service) -> None:
    (alter,) = documented.commands
    raw.create_topic(service.bootstrap, "jobs", 1)
    changed = documented.run(alter, variables=at(service)).stdout
    assert END_GROUP in changed
    commit(service.bootstrap, "jobs-made", "jobs", 1200)
    assert raw.end_offset(service.bootstrap, "jobs", 0) == 1200


def test_curl_asks_a_node(documented: Documented, service: Service) -> None:
    if shutil.which("curl") is None:
        skip_or_fail("curl is not installed")
    health, ready, groups = documented.commands
    raw.create_topic(service.bootstrap, "jobs", 1)
    commit(service.bootstrap, "orders", "jobs", 4)
    documented.run(health, {"HOST:9308": f"127.0.0.1:{service.metrics_port}"})
    here = {"127.0.0.1:9308": f"127.0.0.1:{service.metrics_port}"}
    assert json.loads(documented.run(ready, here).stdout)["ready"] is True
    (found,) = json.loads(documented.run(groups, here).stdout)["groups"]
    assert (found["group"], found["offsets"]) == ("orders", 1)


@pytest.mark.slow
def test_partitions_are_listed_moved_and_drained(
    documented: Documented, make_nodes: Callable[..., Nodes]
) -> None:
    show, move, drain = documented.commands
    nodes = make_nodes(3, offsets_topic_num_partitions=50)
    here = {"DIR": nodes.data_dir}
    assert "127.0.0.1" in documented.run(show, here).stdout
    if nodes.leader(17) == 2:  # a move to where it is would show nothing
        nodes.move(17, 1)
    assert documented.run(move, here).stdout == "node 2 leads partition 17\n"
    assert nodes.leader(17) == 2
    assert documented.run(drain, here).stdout == "node 3 is drained and has ended\n"
    assert {each.leader for each in nodes.look().partitions} == {1, 2}


def test_a_running_cluster_is_taken_over(documented: Documented, service: Service, tmp_path: Path) -> None:
    (command,) = documented.commands
    with serving(tmp_path / "target") as target:
        raw.create_topic(service.bootstrap, "jobs", 1)
        commit(service.bootstrap, "orders", "jobs", 4)
        places = {"kafka:9092": service.bootstrap, "node:9092": f"{target.bootstrap} --execute"}
        documented.run(command, places)
        assert raw.fetch_offsets(target.bootstrap, "orders") == {("jobs", 0): 4}


def test_a_directory_is_looked_at(documented: Documented, tmp_path: Path) -> None:
    free, used, chmod = documented.commands
    directory = tmp_path / "data" / "__consumer_offsets-0"
    directory.mkdir(parents=True)
    directory.chmod(0o755)
    assert "IUse%" in documented.run(free, cwd=directory).stdout
    assert str(directory) in documented.run(used, {"DIR": directory.parent}).stdout
    documented.run(chmod, {"DIR": directory.parent})
    assert directory.stat().st_mode & 0o777 == 0o750


def test_the_machine_is_looked_at(documented: Documented) -> None:
    if shutil.which("vmstat") is None:
        skip_or_fail("vmstat is not installed (procps)")
    (command,) = documented.commands
    assert "cpu" in documented.run(command, {"vmstat 1": "vmstat 1 1"}).stdout


def test_a_certificate_says_when_it_expires(documented: Documented, tmp_path: Path) -> None:
    (command,) = documented.commands
    certificate, _ = TestAuthority(tmp_path / "ca").issue("gateway")
    assert documented.run(command, {"FILE": certificate}).stdout.startswith("notAfter=")


def test_settings_and_metrics_print_their_pages(documented: Documented) -> None:
    *written, shown = documented.commands
    for command in written:
        _, _, name = command.partition(" > ")
        (documented.work / name).parent.mkdir(exist_ok=True)
        documented.run(command)
        assert (documented.work / name).read_text() == (ROOT / name).read_text()
    assert documented.run(shown).stdout == (ROOT / "docs" / "settings.md").read_text()


@pytest.mark.slow
def test_every_command_lists_its_flags(documented: Documented) -> None:
    (command,) = documented.commands
    for words in commands_of_groupkeeper():
        shown = documented.run(command, {"COMMAND": " ".join(words)}).stdout
        assert f"Usage: groupkeeper {' '.join(words)} " in shown
        assert "--help" in shown


def test_a_shell_gets_completion(documented: Documented, tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        skip_or_fail("bash is not installed")
    show, install = documented.commands
    home = {"HOME": str(tmp_path)}
    # The command looks for the shell that has started it, which must not be replaced by it.
    shown, _ = (
        documented.run(command, {command: f"bash -c '{command}; exit $?'"}, variables=home).stdout
        for command in (show, install)
    )
    assert "complete -o default -F _groupkeeper_completion groupkeeper" in shown
    assert (tmp_path / ".bash_completions" / "groupkeeper.sh").read_text().strip() == shown.strip()
    assert "groupkeeper.sh" in (tmp_path / ".bashrc").read_text()
