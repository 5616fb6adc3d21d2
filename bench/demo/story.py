# SPDX-License-Identifier: Apache-2.0
"""The story: two consumers share a topic, one is killed, then the service; and what must hold all the while."""

import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import confluent_kafka

from bench.demo.group import Broken, Group, View, wait_for
from bench.demo.member import Member
from bench.demo.screen import Screen
from bench.servers import Groupkeeper, NotStarted

TOPIC: Final = "orders"
GROUP: Final = "billing"
PARTITIONS: Final = range(12)
SESSION_MS: Final = 6_000
COMMITS_SHOWN: Final = 10
SERVICE_SETTINGS: Final = {"log.flush": "always", "group.initial.rebalance.delay.ms": "3000"}  # the defaults
ADA: Final = "[ada]ada[/]"
BOB: Final = "[bob]bob[/]"


def play(work: Path, service: Groupkeeper, screen: Screen) -> int:
    """Tell the story with this service. Returns the exit status: 1 when something did not hold."""
    with service, Story(work, service, screen) as story:
        try:
            story.tell()
        except NotStarted as broken:
            screen.broken(str(broken))  # which quotes the service already
            return 1
        except (Broken, subprocess.TimeoutExpired) as broken:
            screen.broken(str(broken), story.last_outputs())
            return 1
    return 0


class Story:
    """Told once; its consumers end with it."""

    def __init__(self, work: Path, service: Groupkeeper, screen: Screen) -> None:
        self._work = work
        self._service = service
        self._screen = screen
        self._group = Group(str(service.address), GROUP, TOPIC)
        self._members: list[Member] = []
        self._ending = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.close()

    def tell(self) -> None:
        """Everything, in order. Raises Broken when something does not hold, NotStarted."""
        self._screen.title("Groupkeeper: two Kafka consumers, a takeover and a crash")
        self.start_the_service()
        ada, bob = self.start_the_consumers()
        self.share(ada, bob)
        self.take_over(ada, bob)
        survived = self.crash(bob)
        self.go_on(bob, survived)

    def last_outputs(self) -> dict[str, str]:
        """The end of what each process wrote to its log, by its name."""
        processes: list[Groupkeeper | Member] = [self._service, *self._members]
        return {each.name: each.last_output() for each in processes}

    def start_the_service(self) -> None:
        """An empty data directory, a free port."""
        say = self._screen.say
        self._screen.heading("1. The service starts")
        started = self._service.start()
        say(
            f"groupkeeper serve (pid {self._service.pid}) listens on {self._service.address} after "
            f"{started.listening_ms / 1000:.1f} s, with log.flush=always: what it acknowledges is on disk."
        )
        self._group.create_topic(len(PARTITIONS))
        say(f"Topic {TOPIC} is there, with {len(PARTITIONS)} partitions.")

    def start_the_consumers(self) -> tuple[Member, Member]:
        """Two processes with a real client."""
        self._screen.heading("2. Two consumers share the topic")
        ada, bob = self._join("ada"), self._join("bob")
        self._screen.say(
            f"{ADA} (pid {ada.pid}) and {BOB} (pid {bob.pid}) join group {GROUP}: confluent-kafka "
            f"{confluent_kafka.__version__}, unmodified, session timeout {SESSION_MS / 1000:g} s."
        )
        return ada, bob

    def share(self, ada: Member, bob: Member) -> None:
        """Each partition gets one owner, and the owners commit."""
        with self._screen.waiting("The coordinator waits whether more members come, then shares out."):
            wait_for("ada and bob to share the topic", lambda: len(ada.held) == len(bob.held) == 6)
        view = self._settled(owners(ada, bob))
        self._screen.say(
            "Each partition has one owner. Groupkeeper keeps no messages, so the consumers count as if they "
            "handled some, and commit five times a second."
        )
        with self._screen.waiting("They work and commit."):
            see_commits(ada, bob)
        acknowledged = ada.acknowledged | bob.acknowledged
        committed = self._group.committed()
        self._screen.table(PARTITIONS, {"held by": view.owners, "committed offset": committed})
        require_kept(acknowledged, committed)

    def take_over(self, ada: Member, bob: Member) -> None:
        """One consumer dies; the other goes on with its partitions where it had got to."""
        say = self._screen.say
        self._screen.heading("3. A consumer is killed")
        before = owners(ada, bob)
        killed = time.monotonic()
        ada.kill()
        say(f"SIGKILL for {ADA}. It cannot say goodbye: the coordinator only notices its silence.")
        with self._screen.waiting(f"Nobody hears from {ADA}; its session runs out."):
            wait_for("bob to take over", lambda: len(bob.held) == len(PARTITIONS))
        took_s = time.monotonic() - killed
        view = self._settled(dict.fromkeys(PARTITIONS, "bob"))
        say(
            f"Its session has run out: {took_s:.1f} s after the kill {BOB} holds all {len(PARTITIONS)} partitions."
        )
        rows = {"held before": before, "held now": view.owners}
        offsets = {"ada's last commit": ada.acknowledged, "bob goes on at": bob.held}
        self._screen.table(PARTITIONS, {**rows, **offsets})
        require_kept(ada.acknowledged, bob.held, ada.sent)

    def crash(self, bob: Member) -> dict[int, int]:
        """The service dies while commits come in. Returns the offsets that are there when it is back."""
        say = self._screen.say
        self._screen.heading("4. The service is killed")
        with self._screen.waiting(f"{BOB} commits on."):
            see_commits(bob)
        pid = self._service.pid
        self._service.kill()
        bob.freeze()
        say(
            f"SIGKILL for the service (pid {pid}) while {BOB} commits. {BOB} is halted (SIGSTOP), so that nothing "
            "new comes in before we have looked."
        )
        began = time.monotonic()
        started = self._service.start()
        committed = self._group.committed()
        served_s = time.monotonic() - began
        say(
            f"It is started again on the same data (pid {self._service.pid}): listens after "
            f"{started.listening_ms / 1000:.1f} s, has answered for all offsets after {served_s:.1f} s."
        )
        self._screen.table(PARTITIONS, {"acknowledged": bob.acknowledged, "found again": committed})
        require_kept(bob.acknowledged, committed, bob.sent)
        say(f"[good]All {len(PARTITIONS)} committed offsets are there.[/]")
        return committed

    def go_on(self, bob: Member, survived: Mapping[int, int]) -> None:
        """The survivor never learns more of the crash than a lost connection."""
        say = self._screen.say
        self._screen.heading("5. Work goes on")
        assignments = bob.assignments
        bob.thaw()
        with self._screen.waiting(f"{BOB} finds the service again."):
            wait_for("bob to commit again", lambda: all_grew(survived, bob.acknowledged))
        if bob.assignments != assignments:
            raise Broken("bob had to join again: the service forgot that it was a member")
        say(f"{BOB} (SIGCONT) commits on as the same member; nobody had to join again.")
        status = bob.leave()
        if status != 0:
            raise Broken(f"bob ended with status {status}")
        self._service.stop()
        say(f"{BOB} has left the group, the service has stopped. To start one of your own: make run")

    def _join(self, name: str) -> Member:
        log = self._work / f"{name}.log"
        member = Member(name, str(self._service.address), GROUP, TOPIC, SESSION_MS, log)
        self._members.append(self._ending.enter_context(member))
        return member

    def _settled(self, expected: Mapping[int, str]) -> View:
        """Wait until the coordinator, asked by another client, says the same as the consumers."""
        views = [self._group.view()]

        def agrees() -> bool:
            views.append(self._group.view())
            return views[-1].stable and views[-1].owners == expected

        wait_for("the coordinator to name the owners that the consumers name", agrees)
        return views[-1]


def owners(ada: Member, bob: Member) -> dict[int, str]:
    """Who holds which partition, by what the consumers say. Raises Broken when two hold the same."""
    both = ada.held.keys() & bob.held.keys()
    if both:
        raise Broken(f"two consumers hold partition {sorted(both)}")
    return dict.fromkeys(ada.held, ada.name) | dict.fromkeys(bob.held, bob.name)


def see_commits(*members: Member) -> None:
    """Wait until some more commits of each are acknowledged, and one at least for every partition."""
    goals = {member: member.commits + COMMITS_SHOWN for member in members}
    names = " and ".join(member.name for member in members)
    wait_for(
        f"commits of {names}",
        lambda: all(
            member.commits >= goal and all_grew(member.held, member.acknowledged)
            for member, goal in goals.items()
        ),
    )


def all_grew(before: Mapping[int, int], now: Mapping[int, int]) -> bool:
    """Whether each offset is greater than it was."""
    return all(now.get(partition, at) > at for partition, at in before.items())


def require_kept(
    acknowledged: Mapping[int, int], found: Mapping[int, int], sent: Mapping[int, int] | None = None
) -> None:
    """Raise Broken unless all that was acknowledged is found, and nothing that was never sent.

    More than was acknowledged may be there: the commit whose answer was on its way when a process was killed.
    """
    wrong = [
        f"partition {partition}: {at} was acknowledged, {found.get(partition, 'nothing')} is there"
        for partition, at in sorted(acknowledged.items())
        if partition not in found or not at <= found[partition] <= (sent or found)[partition]
    ]
    if wrong:
        raise Broken(f"{len(wrong)} of {len(acknowledged)} committed offsets are wrong: {'; '.join(wrong)}")
