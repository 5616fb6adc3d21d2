# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper adopt` and `groupkeeper give-back`, between a real cluster and a running gateway."""

import asyncio
import json
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import confluent_kafka as ck
import pytest

from bench.installed import groupkeeper
from bench.ports import BROKERS, free_ports
from coordinator.cli.moving.private_nodes_client import PrivateNodes
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId
from tests.cli.terminals import on_a_terminal
from tests.kafka.cluster import KafkaCluster
from tests.support import raw
from tests.support.documented import Documented
from tests.support.newer_groups import LONG_SESSIONS, member_of
from tests.support.processes import environment
from tests.support.service import Service
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(180)]


LOADING: Final = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
METADATA_MAX: Final = 64
"""Bytes of metadata that the cluster takes with an offset; the gateway takes more."""


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
        code, out, err = self.run(*arguments, "--execute", "--json")
        assert code == 0, err + out
        return results(out)

    def would_move(self, *arguments: str) -> dict[str, tuple[str, dict[tuple[str, int], int]]]:
        """What the command says that it would do, by group; it must have succeeded."""
        code, out, err = self.run(*arguments, "--json")
        assert err == "dry run: nothing was changed; --execute makes the changes\n"
        assert code == 0, err + out
        return results(out)

    def commit(self, group: str, offsets: Mapping[int, int]) -> None:
        """Commit at the cluster."""
        raw.wait_for_coordinator(self.kafka.address(1), group)
        raw.commit_offsets(self.kafka.address(1), group, "t", offsets)

    def there(self, group: str) -> dict[tuple[str, int], int]:
        """The offsets at the cluster."""
        return raw.fetch_offsets(self.kafka.address(1), group)

    @property
    def bootstrap(self) -> str:
        """What clients are given."""
        return f"127.0.0.1:{int(self.service.settings['gateway.port.base']) + 1}"

    def coordinator(self, group: str) -> str:
        """The address of the node that coordinates a group."""

        def found() -> Any:
            with suppress(OSError):
                answer = raw.find_coordinator(self.bootstrap, group)
                return answer if answer.error_code == 0 else None

        answer = wait_until(
            found, what=lambda: f"a coordinator of {group}:\n{self.service.log_text()[-4000:]}"
        )
        return f"{answer.host}:{answer.port}"

    def here(self, group: str) -> dict[tuple[str, int], int]:
        """The offsets that clients of the gateway read; of a group that is not here those at the cluster."""
        return raw.fetch_offsets(self.coordinator(group), group)

    def commit_here(self, group: str, offsets: Mapping[int, int], metadata: str = "") -> int:
        """Commit through the gateway as no member; the error of that."""
        with raw.RawConnection(self.coordinator(group)) as connection:
            answer = connection.call(raw.standalone_commit(group, "t", offsets, metadata=metadata), 8)
        (code,) = {part.error_code for part in answer.topics[0].partitions}
        return int(code)

    def commits_here(self, group: str, offsets: Mapping[int, int], metadata: str = "") -> None:
        """As a client that tries again."""
        wait_until(lambda: self.commit_here(group, offsets, metadata) == 0, what="a commit that is taken")

    def stays(self, group: str, *more: str) -> tuple[str, str]:
        """Let the command say that it would not give a group back, and then not do it; (result, reason).

        Both say the same, and neither changes anything on either side.
        """
        said = []
        before = self.here(group), self.there(group), raw.list_groups(self.kafka.address(1)).get(group)
        for flags in ((), ("--execute",)):
            code, out, err = self.run("give-back", "--group", group, *more, *flags, "--json")
            assert (code, "1 of 1 groups were not moved" in err) == (1, True), out + err
            said.append(json.loads(out))
            assert before == (
                self.here(group),
                self.there(group),
                raw.list_groups(self.kafka.address(1)).get(group),
            )
        assert said[0] == said[1]
        assert self.commit_here(group, {2: 1}) != LOADING, "it is open"
        return said[0][0]["result"], said[0][0]["reason"]


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
    settings = {**LONG_SESSIONS, "offset.metadata.max.bytes": METADATA_MAX}
    cluster = KafkaCluster(tmp_path_factory.mktemp("kafka"), settings=settings)
    try:
        cluster.start()
        cluster.create_topic("t", 3)
        cluster.create_topic("gone", 2)
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="module")
def gateway(kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    settings: dict[str, Any] = {
        "upstream.bootstrap.servers": kafka.bootstrap(),
        "gateway.port.base": free_ports(1, BROKERS)[0] - 1,
        "upstream.metadata.refresh.ms": 600_000,  # offsets of a topic that is deleted stay here for now
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
    assert gateway.would_move("adopt", *group) == {"there-and-back": ("would be adopted", offsets)}
    assert gateway.moved("adopt", *group) == {"there-and-back": ("adopted", offsets)}
    assert gateway.moved("adopt", *group) == {"there-and-back": ("already here", {})}
    raw.commit_offsets(gateway.kafka.address(1), "there-and-back", "t", {0: 1, 1: 1})
    assert gateway.would_move("give-back", *group) == {"there-and-back": ("would be given back", offsets)}
    code, out, err = gateway.run("give-back", *group, "--execute", "--json")
    assert (code, results(out)) == (0, {"there-and-back": ("given back", offsets)})
    assert "through the gateway, or commits without joining, takes the group over again" in err
    assert gateway.there("there-and-back") == offsets, "what was here counts"
    assert gateway.moved("give-back", *group) == {"there-and-back": ("nothing here", {})}


def test_the_documented_commands_move_groups(documented: Documented, gateway: Gateway) -> None:
    would_adopt_all, would_adopt, adopt, give_back, give_one_back, give_all_back = documented.commands
    (documented.work / "data").symlink_to(gateway.service.data_dir)  # where those that name `data` look
    here = {"/var/lib/groupkeeper": gateway.service.data_dir}
    for group in ("typed", "typed-too", "typed-last"):
        gateway.commit(group, {0: 3})
    pair = {"GROUP": "typed", "OTHER": "typed-too"}
    assert "would be adopted" in documented.run(would_adopt_all).stdout
    assert "would be adopted" in documented.run(would_adopt, {**here, "GROUP": "typed"}).stdout
    assert documented.run(adopt, pair).stdout.count(" adopted ") == 2
    assert documented.run(give_back, pair).stdout.count(" given back ") == 2
    gateway.moved("adopt", "--group=typed", "--group=typed-last")
    assert "given back" in documented.run(give_one_back, {**here, "GROUP": "typed"}).stdout
    assert "typed-last" in documented.run(give_all_back, here).stdout
    assert gateway.moved("give-back", "--group=typed-last") == {"typed-last": ("nothing here", {})}
    assert gateway.there("typed-last") == {("t", 0): 3}


def test_what_was_deleted_here_is_deleted_there_if_that_is_asked_for(gateway: Gateway) -> None:
    gateway.commit("shrunk", {0: 3, 1: 5})
    gateway.moved("adopt", "--group", "shrunk")
    base = int(gateway.service.settings["gateway.port.base"])
    at = ("--bootstrap", f"127.0.0.1:{base + 1}")
    delete = [*groupkeeper(), "groups", "delete-offsets", "shrunk", "--topic", "t:1", "--execute", *at]
    done = subprocess.run(delete, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    left = {("t", 0): 3}
    code, out, _ = gateway.run("give-back", "--group", "shrunk")
    assert (code, "not here, and still at the cluster: t-1" in out) == (0, True)
    assert gateway.moved("give-back", "--group", "shrunk", "--delete-rest") == {
        "shrunk": ("given back", left)
    }
    assert gateway.there("shrunk") == left


def test_what_else_the_cluster_has_stays_there_and_is_named(gateway: Gateway) -> None:
    gateway.commit("both", {0: 3})
    gateway.moved("adopt", "--group", "both")
    gateway.commit("both", {1: 5})  # by a consumer that has not moved
    code, out, _ = gateway.run("give-back", "--group", "both", "--execute")
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
        code, out, err = gateway.run("adopt", "--group", "live", "--execute")
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
        code, out, _ = gateway.run("adopt", *group, "--execute")
        assert code == 1
        assert "live at the cluster" in out
        assert "streams group, " in out
        assert "1 members: stop them first, or use --force" in out
        assert "streams" not in gateway.would_move("adopt", "--all"), "it has to be named"
        assert gateway.moved("adopt", *group, "--force") == {"streams": ("adopted", {("t", 0): 2})}


def test_a_share_group_has_nothing_to_take_over(gateway: Gateway) -> None:
    with member_of("share", gateway.kafka.address(1), "share", "t"):
        pass
    assert "share" not in gateway.would_move("adopt", "--all")
    code, out, _ = gateway.run("adopt", "--group", "share", "--execute")
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
        code, out, _ = gateway.run("give-back", "--group", "back-streams", "--execute")
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
        result, reason = gateway.stays("back-share")
        assert result == "live at the cluster"
        assert reason == "share group, Stable, 1 members: stop them first"
    result, reason = gateway.stays("back-share")
    assert result == "share group at the cluster"
    assert "it accepts no offsets; delete it there first" in reason
    gateway.commits_here("back-share", {0: 4, 2: 1})
    gateway.kafka.admin().delete_consumer_groups(["back-share"])["back-share"].result(120)
    given = ("given back", {("t", 0): 4, ("t", 2): 1})
    assert gateway.moved("give-back", "--group", "back-share") == {"back-share": given}


@contextmanager
def member_at(bootstrap: str, group: str, **settings: Any) -> Iterator[ck.Consumer]:
    """A consumer that is in the group, and has partitions."""
    consumer = ck.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    try:
        consumer.subscribe(["t"])
        wait_until(lambda: consumer.poll(0.2) or consumer.assignment(), what="a member")
        yield consumer
    finally:
        consumer.close()


def test_nothing_is_written_for_a_group_with_members_here(gateway: Gateway) -> None:
    gateway.commits_here("lives-here", {0: 3})
    with member_at(gateway.bootstrap, "lives-here"):
        assert gateway.stays("lives-here") == ("live here", "stop its consumers first")
        assert gateway.stays("lives-here", "--delete-rest") == ("live here", "stop its consumers first")
        assert "lives-here" not in raw.list_groups(gateway.kafka.address(1))
    assert gateway.moved("give-back", "--group", "lives-here")["lives-here"][0] == "given back"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_nothing_is_written_for_a_group_with_members_at_the_cluster(gateway: Gateway, protocol: str) -> None:
    group = f"lives-there-{protocol}"
    only_here(gateway, group)
    with member_at(gateway.kafka.bootstrap(), group, **{"group.protocol": protocol}):
        result, reason = gateway.stays(group)
        assert (result, reason) == (
            "live at the cluster",
            f"{protocol} group, Stable, 1 members: stop them first",
        )
    assert "--force" not in gateway.run("give-back", "--help")[1], "there is nothing to force"


def test_nothing_is_written_for_a_group_some_of_whose_offsets_the_cluster_would_refuse(
    gateway: Gateway,
) -> None:
    """The topic was deleted, and the gateway has not seen that yet."""
    gateway.commit("half-gone", {0: 3})
    raw.commit_offsets(gateway.kafka.address(1), "half-gone", "gone", {0: 1, 1: 2})
    gateway.moved("adopt", "--group", "half-gone")
    gateway.kafka.delete_topic("gone")
    gateway.kafka.admin().delete_consumer_groups(["half-gone"])["half-gone"].result(120)
    result, reason = gateway.stays("half-gone")
    assert result == "refused by the cluster"
    assert reason == "gone-0: UNKNOWN_TOPIC_OR_PARTITION, gone-1: UNKNOWN_TOPIC_OR_PARTITION"
    assert "half-gone" not in raw.list_groups(gateway.kafka.address(1))
    with raw.RawConnection(gateway.coordinator("half-gone")) as connection:
        assert connection.call(raw.offset_delete("half-gone", "gone", [0, 1]), 0).error_code == 0
    given = ("given back", {("t", 0): 3, ("t", 2): 1})
    assert gateway.moved("give-back", "--group", "half-gone") == {"half-gone": given}


def test_what_the_cluster_has_taken_and_what_it_has_refused_are_named(gateway: Gateway) -> None:
    """That it takes no such metadata does not show before."""
    gateway.commits_here("too-long", {0: 3})
    gateway.commits_here("too-long", {1: 5}, metadata="x" * (METADATA_MAX + 1))
    code, out, err = gateway.run("give-back", "--group", "too-long", "--execute", "--json")
    assert code == 1, err
    (done,) = json.loads(out)
    assert done["result"] == "refused by the cluster"
    assert done["reason"] == "t-1: OFFSET_METADATA_TOO_LARGE; written to the cluster nevertheless: t-0"
    assert [(each["topic"], each["partition"], each["offset"]) for each in done["written"]] == [("t", 0, 3)]
    assert gateway.there("too-long") == {("t", 0): 3}
    assert gateway.here("too-long") == {("t", 0): 3, ("t", 1): 5}
    assert gateway.commit_here("too-long", {1: 6}) == 0, "it is open"
    given = ("given back", {("t", 0): 3, ("t", 1): 6})
    assert gateway.moved("give-back", "--group", "too-long") == {"too-long": given}


KILLED: Final = [
    ("close_for_give_back", "before", True),
    ("close_for_give_back", "after", False),
    ("commit", "before", False),
    ("commit", "after", False),
    ("remove_group_if_unchanged", "before", False),
]


@pytest.mark.parametrize(("question", "when", "opens"), KILLED)
def test_a_command_that_was_killed_is_run_again(
    gateway: Gateway, question: str, when: str, opens: bool
) -> None:
    """Clients are turned away as long as the group is closed, and the dry run says what the run does."""
    group = f"killed-{when}-{question}"
    offsets = {("t", 0): 3, ("t", 2): 4}
    gateway.commits_here(group, {0: 3, 2: 4})
    with mover(gateway, "give-back", question, when, "SIGKILL", group) as killed:
        assert killed.wait(120) == -signal.SIGKILL
    assert gateway.here(group) == offsets
    if opens:
        assert gateway.commit_here(group, {0: 5}) == 0
        offsets[("t", 0)] = 5
    else:
        assert gateway.commit_here(group, {0: 5}) == LOADING
    assert gateway.would_move("give-back", "--group", group) == {group: ("would be given back", offsets)}
    assert gateway.moved("give-back", "--group", group) == {group: ("given back", offsets)}
    assert gateway.there(group) == offsets


def mover(
    gateway: Gateway, command: str, question: str, when: str, what: str, *groups: str
) -> subprocess.Popen[str]:
    """A process that does what the command does, and gets a signal at one of its questions."""
    program = [sys.executable, "-m", "tests.cli.killed_mover", command, question, when, what]
    program += [str(gateway.service.data_dir), gateway.kafka.bootstrap(), *groups]
    return subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment())


@contextmanager
def stopped(gateway: Gateway, group: str) -> Iterator[subprocess.Popen[str]]:
    """A mover that has written the group's offsets to the cluster, and stands still; it goes on when asked to."""
    with mover(gateway, "give-back", "commit", "after", "SIGSTOP", group) as process:
        try:
            stat = Path(f"/proc/{process.pid}/stat")
            wait_until(
                lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", what="a mover that stands"
            )
            yield process
        finally:
            process.kill()


def goes_on(process: subprocess.Popen[str]) -> Any:
    """What a mover has done that may go on."""
    process.send_signal(signal.SIGCONT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    (done,) = json.loads(out)
    return done


def test_a_commit_meanwhile_is_told_to_come_again(gateway: Gateway) -> None:
    gateway.commits_here("meanwhile", {0: 3})
    with stopped(gateway, "meanwhile") as process:
        assert gateway.commit_here("meanwhile", {0: 4}) == LOADING
        assert gateway.here("meanwhile") == gateway.there("meanwhile") == {("t", 0): 3}
        assert goes_on(process)["result"] == "given back"
    assert gateway.there("meanwhile") == {("t", 0): 3}
    gateway.commits_here("meanwhile", {1: 9})
    assert gateway.here("meanwhile") == {("t", 0): 3, ("t", 1): 9}, "it was taken over again for that"


def test_a_commit_to_a_group_that_has_opened_meanwhile_goes_along(gateway: Gateway) -> None:
    """As after half a minute in which the command was asleep."""
    gateway.commits_here("overtaken", {0: 3})
    with stopped(gateway, "overtaken") as process:
        open_again(gateway, "overtaken")
        assert gateway.commit_here("overtaken", {0: 4}) == 0
        done = goes_on(process)
    assert (done["result"], done["offsets"][0]["offset"]) == ("given back", 4)
    assert gateway.there("overtaken") == {("t", 0): 4}


def test_a_group_that_is_joined_after_it_has_opened_stays_and_what_was_written_is_named(
    gateway: Gateway,
) -> None:
    gateway.commits_here("joined", {0: 3})
    with stopped(gateway, "joined") as process:
        open_again(gateway, "joined")
        with member_at(gateway.bootstrap, "joined") as consumer:
            done = goes_on(process)
            consumer.commit(offsets=[ck.TopicPartition("t", 0, 8)], asynchronous=False)
    assert done["result"] == "live here"
    assert done["reason"] == "stop its consumers first; written to the cluster nevertheless: t-0"
    assert gateway.here("joined") == {("t", 0): 8}
    given = ("given back", {("t", 0): 8})
    assert gateway.moved("give-back", "--group", "joined") == {"joined": given}
    assert gateway.there("joined") == {("t", 0): 8}


def open_again(gateway: Gateway, group: str) -> None:
    with PrivateNodes(gateway.service.data_dir, 30.0) as nodes:
        asyncio.run(nodes.reopen_group(GroupId(group)))


def test_all_of_them_are_moved_however_often_the_command_is_killed(gateway: Gateway) -> None:
    """Killed at seeded steps, before or after they had their effect, and run again, it loses nothing."""
    groups = {f"all-{number}": {number % 3: number + 1} for number in range(10)}
    for group, offsets in groups.items():
        gateway.commit(group, offsets)
    wanted = {group: {("t", part): offset for part, offset in each.items()} for group, each in groups.items()}

    kill_and_run(gateway, "adopt", seed=1)
    adopted = gateway.moved("adopt", "--all")
    assert {adopted[group][0] for group in groups} == {"already here"}
    would = gateway.would_move("give-back", "--all")
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
        question, when = str(chance.randint(1, 20)), chance.choice(["before", "after"])
        with mover(gateway, command, question, when, "SIGKILL") as killed:
            assert killed.wait(120) == -signal.SIGKILL
    code, out, err = gateway.run(command, "--all", "--execute")
    assert code == 0, err + out


def test_a_table_for_people(gateway: Gateway) -> None:
    gateway.commit("tabled", {0: 3})
    code, out, _ = gateway.run("adopt", "--group", "tabled", "--execute")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert ["GROUP", "RESULT", "OFFSETS", "REASON"] in lines
    assert ["tabled", "adopted", "1", "-"] in lines


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("adopt",), 2, "expected either --group or --all"),
        (("adopt", "--all", "--group", "g"), 2, "expected either --group or --all"),
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
        *(
            (
                ("give-back", "--all", *flags, "--set=upstream.bootstrap.servers=127.0.0.1:1"),
                1,
                "cannot reach",
            )
            for flags in ((), ("--execute",))
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


@pytest.mark.parametrize("command", ["adopt", "give-back"])
def test_the_settings_are_those_of_the_gateway_that_runs_there(gateway: Gateway, command: str) -> None:
    gateway.commit(f"asked-{command}", {0: 4})
    program = [*groupkeeper(), command, "--group", f"asked-{command}", "--json", "--data-dir"]
    for data_dir in (gateway.service.data_dir, gateway.service.data_dir.parent):
        done = subprocess.run(
            [*program, str(data_dir)], capture_output=True, text=True, env=environment(), check=False
        )
        if data_dir == gateway.service.data_dir:
            assert results(done.stdout).keys() == {f"asked-{command}"}, done.stderr
        else:
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr.startswith(f"groupkeeper: no gateway runs on {data_dir}: ")


def test_a_terminal_shows_the_progress(gateway: Gateway) -> None:
    gateway.commit("seen", {0: 4})
    for doing, words in (("taking groups over", ["adopt"]), ("giving groups back", ["give-back"])):
        command = gateway.command(*words, "--group", "seen", "--execute")
        shown = on_a_terminal(*command[len(groupkeeper()) :], columns=120)
        assert shown.index(doing) < shown.index("1/1") < shown.rindex("seen")


def test_two_cannot_give_back_at_once(gateway: Gateway, tmp_path: Path) -> None:
    import fcntl

    with (gateway.service.data_dir / "private" / "moving.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, _, err = gateway.run("give-back", "--all")
    assert (code, err) == (1, "groupkeeper: another `groupkeeper give-back` is running\n")


def test_a_gateway_that_is_away_has_all_of_its_groups_when_it_is_back(gateway: Gateway) -> None:
    """It goes away in the middle, and is away for the next ones, which say so with and without --dry-run."""
    gateway.commits_here("away", {0: 3})
    with stopped(gateway, "away") as process:
        gateway.service.kill9()
        wait_until(lambda: not any(map(answers, private_sockets(gateway))), what="nodes that have ended")
        done = goes_on(process)
        assert (done["result"], done["written"]) == ("failed", [])
        assert "the cluster may have taken offsets of it" in done["reason"]
    said = [gateway.run("give-back", "--group", "away", *flags) for flags in ((), ("--execute",))]
    assert said[0] == said[1]
    assert (said[0][0], said[0][1]) == (1, "")
    gateway.service.launch()
    assert gateway.here("away") == {("t", 0): 3}
    gateway.commits_here("away", {0: 4})
    given = ("given back", {("t", 0): 4})
    assert gateway.moved("give-back", "--group", "away") == {"away": given}
    assert gateway.there("away") == {("t", 0): 4}


def private_sockets(gateway: Gateway) -> list[Path]:
    return list((gateway.service.data_dir / "private").glob("*.sock"))


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0
