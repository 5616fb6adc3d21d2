# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper adopt` and `groupkeeper give-back`, between a real cluster and a running gateway."""

import json
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest

from bench.installed import groupkeeper
from bench.ports import BROKERS, free_ports
from tests.kafka.cluster import KafkaCluster
from tests.support import raw
from tests.support.newer_groups import LONG_SESSIONS, member_of
from tests.support.processes import environment
from tests.support.service import Service
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(180)]


@dataclass
class Gateway:
    """A gateway, the cluster behind it, and the command."""

    service: Service
    kafka: KafkaCluster

    def command(self, *arguments: str) -> list[str]:
        settings = [f"--set={key}={value}" for key, value in self.service.settings.items()]
        return [*groupkeeper(), *arguments, "--data-dir", str(self.service.data_dir), *settings]

    def run(self, *arguments: str) -> tuple[int, str, str]:
        done = subprocess.run(
            self.command(*arguments), capture_output=True, text=True, env=environment(), check=False
        )
        return done.returncode, done.stdout, done.stderr

    def moved(self, *arguments: str) -> dict[str, tuple[str, dict[tuple[str, int], int]]]:
        """What the command says that it did, by group; it must have succeeded."""
        code, out, err = self.run(*arguments, "--json")
        assert code == 0, err + out
        return results(out)

    def commit(self, group: str, offsets: Mapping[int, int]) -> None:
        """Commit at the cluster."""
        raw.wait_for_coordinator(self.kafka.address(1), group)
        raw.commit_offsets(self.kafka.address(1), group, "t", offsets)

    def there(self, group: str) -> dict[tuple[str, int], int]:
        """The offsets at the cluster."""
        return raw.fetch_offsets(self.kafka.address(1), group)


def results(out: str) -> dict[str, tuple[str, dict[tuple[str, int], int]]]:
    return {
        each["group"]: (
            each["result"],
            {(offset["topic"], offset["partition"]): offset["offset"] for offset in each["offsets"]},
        )
        for each in json.loads(out)
    }


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    cluster = KafkaCluster(tmp_path_factory.mktemp("kafka"), settings=LONG_SESSIONS)
    try:
        cluster.start()
        cluster.create_topic("t", 3)
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="module")
def gateway(kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    settings: dict[str, Any] = {
        "upstream.bootstrap.servers": kafka.bootstrap(),
        "gateway.port.base": free_ports(1, BROKERS)[0] - 1,
        "workers": 2,
    }
    service = Service(tmp_path_factory.mktemp("gateway"), settings)
    try:
        service.launch()
        private = service.data_dir / "private"
        wait_until(
            lambda: len(list(private.glob("*.sock"))) == 2, what=lambda: f"nodes:\n{service.log_text()}"
        )
        yield Gateway(service, kafka)
    finally:
        service.close()


def test_there_and_back(gateway: Gateway) -> None:
    gateway.commit("there-and-back", {0: 3, 1: 5})
    offsets = {("t", 0): 3, ("t", 1): 5}
    group = ("--group", "there-and-back")
    assert gateway.moved("adopt", *group, "--dry-run") == {"there-and-back": ("would be adopted", offsets)}
    assert gateway.moved("adopt", *group) == {"there-and-back": ("adopted", offsets)}
    assert gateway.moved("adopt", *group) == {"there-and-back": ("already here", {})}
    raw.commit_offsets(gateway.kafka.address(1), "there-and-back", "t", {0: 1, 1: 1})
    assert gateway.moved("give-back", *group, "--dry-run") == {
        "there-and-back": ("would be given back", offsets)
    }
    code, out, err = gateway.run("give-back", *group, "--json")
    assert (code, results(out)) == (0, {"there-and-back": ("given back", offsets)})
    assert "asked for through the gateway, if only to describe it, is taken over again" in err
    assert gateway.there("there-and-back") == offsets, "what was here counts"
    assert gateway.moved("give-back", *group) == {"there-and-back": ("nothing here", {})}


def test_what_was_deleted_here_is_deleted_there_if_that_is_asked_for(gateway: Gateway) -> None:
    gateway.commit("shrunk", {0: 3, 1: 5})
    gateway.moved("adopt", "--group", "shrunk")
    base = int(gateway.service.settings["gateway.port.base"])
    at = ("--bootstrap", f"127.0.0.1:{base + 1}")
    delete = [*groupkeeper(), "groups", "delete-offsets", "shrunk", "--topic", "t:1", "--execute", *at]
    done = subprocess.run(delete, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    left = {("t", 0): 3}
    code, out, _ = gateway.run("give-back", "--group", "shrunk", "--dry-run")
    assert (code, "not here, and still at the cluster: t-1" in out) == (0, True)
    assert gateway.moved("give-back", "--group", "shrunk", "--delete-rest") == {
        "shrunk": ("given back", left)
    }
    assert gateway.there("shrunk") == left


def test_what_else_the_cluster_has_stays_there_and_is_named(gateway: Gateway) -> None:
    gateway.commit("both", {0: 3})
    gateway.moved("adopt", "--group", "both")
    gateway.commit("both", {1: 5})  # by a consumer that has not moved
    code, out, _ = gateway.run("give-back", "--group", "both")
    assert (code, "not here, and still at the cluster: t-1" in out) == (0, True)
    assert gateway.there("both") == {("t", 0): 3, ("t", 1): 5}


def test_a_live_group_is_not_taken_without_force(gateway: Gateway) -> None:
    consumer = ck.Consumer(
        {"bootstrap.servers": gateway.kafka.bootstrap(), "group.id": "live", "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe(["t"])
        wait_until(lambda: consumer.poll(0.2) or consumer.assignment(), what="a member")
        consumer.commit(offsets=[ck.TopicPartition("t", 0, 2)], asynchronous=False)
        code, out, err = gateway.run("adopt", "--group", "live")
        assert code == 1
        assert "live at the cluster" in out
        assert "classic group, Stable, 1 members" in out
        assert "1 of 1 groups were not moved" in err
        forced = gateway.moved("adopt", "--group", "live", "--force")
        assert forced == {"live": ("adopted", {("t", 0): 2})}
    finally:
        consumer.close()


def test_a_live_streams_group_is_not_taken_without_force(gateway: Gateway) -> None:
    group = ("--group", "streams")
    gateway.commit("streams", {0: 2})
    with member_of("streams", gateway.kafka.address(1), "streams", "t"):
        code, out, _ = gateway.run("adopt", *group)
        assert code == 1
        assert "live at the cluster" in out
        assert "streams group, " in out
        assert "1 members: stop them first, or --force" in out
        assert "streams" not in gateway.moved("adopt", "--all", "--dry-run"), "it has to be named"
        assert gateway.moved("adopt", *group, "--force") == {"streams": ("adopted", {("t", 0): 2})}


def test_a_share_group_has_nothing_to_take_over(gateway: Gateway) -> None:
    with member_of("share", gateway.kafka.address(1), "share", "t"):
        pass
    assert "share" not in gateway.moved("adopt", "--all", "--dry-run")
    code, out, _ = gateway.run("adopt", "--group", "share")
    assert code == 1
    assert "share group at the cluster" in out
    assert "share group, Empty, 0 members: it has no committed offsets to take over" in out


def only_here(gateway: Gateway, group: str) -> None:
    """Have the gateway take a group over, and the cluster forget it."""
    gateway.commit(group, {0: 4})
    assert gateway.moved("adopt", "--group", group) == {group: ("adopted", {("t", 0): 4})}
    gateway.kafka.admin().delete_consumer_groups([group])[group].result(120)


def test_a_group_is_given_back_once_a_streams_group_of_its_id_has_no_members(gateway: Gateway) -> None:
    only_here(gateway, "back-streams")
    with member_of("streams", gateway.kafka.address(1), "back-streams", "t"):
        code, out, _ = gateway.run("give-back", "--group", "back-streams")
        assert code == 1
        assert "live at the cluster" in out
        assert "streams group, " in out
        assert "1 members: stop them first" in out
        assert gateway.there("back-streams") == {}
    given = ("given back", {("t", 0): 4})
    assert gateway.moved("give-back", "--group", "back-streams") == {"back-streams": given}
    assert gateway.there("back-streams") == {("t", 0): 4}


def test_a_group_is_not_given_back_to_a_share_group(gateway: Gateway) -> None:
    only_here(gateway, "back-share")
    with member_of("share", gateway.kafka.address(1), "back-share", "t"):
        code, out, _ = gateway.run("give-back", "--group", "back-share")
        assert code == 1
        assert "share group, Stable, 1 members: stop them first" in out
    code, out, _ = gateway.run("give-back", "--group", "back-share")
    assert code == 1
    assert "share group at the cluster" in out
    assert "it takes no offsets; delete it there first" in out
    gateway.kafka.admin().delete_consumer_groups(["back-share"])["back-share"].result(120)
    given = ("given back", {("t", 0): 4})
    assert gateway.moved("give-back", "--group", "back-share") == {"back-share": given}


def test_all_of_them_are_moved_however_often_the_command_is_killed(gateway: Gateway) -> None:
    """Killed at seeded steps, before or after they had their effect, and run again, it loses nothing."""
    groups = {f"all-{number}": {number % 3: number + 1} for number in range(10)}
    for group, offsets in groups.items():
        gateway.commit(group, offsets)
    wanted = {group: {("t", part): offset for part, offset in each.items()} for group, each in groups.items()}

    kill_and_run(gateway, "adopt", seed=1)
    adopted = gateway.moved("adopt", "--all")
    assert {adopted[group][0] for group in groups} == {"already here"}
    would = gateway.moved("give-back", "--all", "--dry-run")
    assert {group: would[group][1] for group in groups} == wanted

    for group, offsets in groups.items():  # what the cluster has becomes old
        raw.commit_offsets(gateway.kafka.address(1), group, "t", dict.fromkeys(offsets, 0))
    kill_and_run(gateway, "give-back", seed=2)
    left = gateway.moved("give-back", *(f"--group={group}" for group in groups))
    assert {outcome for outcome, _ in left.values()} == {"nothing here"}
    assert {group: gateway.there(group) for group in groups} == wanted


def kill_and_run(gateway: Gateway, command: str, seed: int) -> None:
    """Let movers be killed at one of their first twenty questions each, and the command end the work."""
    chance = random.Random(seed)
    for _ in range(6):
        program = [sys.executable, "-m", "tests.cli.killed_mover", command, str(chance.randint(1, 20))]
        program += [
            chance.choice(["before", "after"]),
            str(gateway.service.data_dir),
            gateway.kafka.bootstrap(),
        ]
        killed = subprocess.run(program, capture_output=True, text=True, env=environment(), check=False)
        assert killed.returncode == -signal.SIGKILL, killed
    code, out, err = gateway.run(command, "--all")
    assert code == 0, err + out


def test_a_table_for_people(gateway: Gateway) -> None:
    gateway.commit("tabled", {0: 3})
    code, out, _ = gateway.run("adopt", "--group", "tabled")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert ["GROUP", "RESULT", "OFFSETS", "REASON"] in lines
    assert ["tabled", "adopted", "1", "-"] in lines


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("adopt",), 2, "expected --group, or --all, and not both"),
        (("adopt", "--all", "--group", "g"), 2, "expected --group, or --all, and not both"),
        (
            ("give-back", "--all", "--set=upstream.bootstrap.servers="),
            2,
            "needs upstream.bootstrap.servers",
        ),
        (
            ("adopt", "--all", "--set=upstream.bootstrap.servers=127.0.0.1:1"),
            1,
            "bootstrap.servers: cannot reach",
        ),
        (("adopt", "--all", "--data-dir=/nowhere"), 1, "no gateway serves /nowhere"),
        (("give-back", "--all", "--data-dir=/nowhere"), 1, "no gateway serves /nowhere"),
    ],
)
def test_what_makes_no_sense(gateway: Gateway, arguments: tuple[str, ...], code: int, said: str) -> None:
    command = [*gateway.command(*arguments[:1]), *arguments[1:]]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert (done.returncode, done.stdout) == (code, ""), done
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["adopt", "give-back"])
def test_another_cluster_than_the_gateways_is_refused(gateway: Gateway, tmp_path: Path, command: str) -> None:
    """Its groups may have the same names."""
    (tmp_path / "private").symlink_to(gateway.service.data_dir / "private")
    known = gateway.service.data_dir / "upstream.json"
    wait_until(known.exists, what="a gateway that has seen its cluster")
    cluster_id = raw_cluster_id(gateway.kafka)
    assert cluster_id in known.read_text()
    (tmp_path / "upstream.json").write_text(known.read_text().replace(cluster_id, "another"))
    program = [*gateway.command(command), "--all", "--data-dir", str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, env=environment(), check=False)
    assert (done.returncode, done.stdout) == (1, ""), done
    assert "the groups here are of another" in done.stderr


def raw_cluster_id(kafka: KafkaCluster) -> str:
    return str(raw.metadata(kafka.address(1), "t").cluster_id)


def test_two_cannot_give_back_at_once(gateway: Gateway, tmp_path: Path) -> None:
    import fcntl

    with (gateway.service.data_dir / "private" / "moving.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, _, err = gateway.run("give-back", "--all")
    assert (code, err) == (1, "groupkeeper: another `groupkeeper give-back` is running\n")
