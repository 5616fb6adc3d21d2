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
        except (Broken, NotStarted, subprocess.TimeoutExpired) as broken:
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
        self.crash(bob)
        self.go_on(bob)

    def last_outputs(self) -> dict[str, str]:
        """The end of what each process wrote, by its name."""
        return {each.name: each.last_output() for each in (self._service, *self._members)}

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
        with self._screen.waiting("The coordinator waits 3 s for members before it shares out."):
            wait_for("ada and bob to share the topic", lambda: len(ada.held) == len(bob.held) == 6)
        view = self._settled(dict.fromkeys(ada.held, "ada") | dict.fromkeys(bob.held, "bob"))
        self._screen.say("Each partition has one owner. Both work, and commit five times a second.")
        with self._screen.waiting("They work."):
            for member in (ada, bob):
                self._see_commits(member, COMMITS_SHOWN)
        acknowledged = ada.acknowledged | bob.acknowledged
        found = self._group.committed()
        require_kept(acknowledged, ada.sent | bob.sent, found, "asked meanwhile")
        self._screen.table(PARTITIONS, {"held by": view.owners, "committed": found})

    def take_over(self, ada: Member, bob: Member) -> None:
        """One consumer dies; the other goes on with its partitions where it got to."""
        say = self._screen.say
        self._screen.heading("3. ada is killed")
        before = dict.fromkeys(ada.held, "ada") | dict.fromkeys(bob.held, "bob")
        killed = time.monotonic()
        ada.kill()
        say(f"SIGKILL for {ADA}. It cannot say goodbye: the coordinator only notices its silence.")
        with self._screen.waiting("The coordinator waits for ada until its session is over."):
            wait_for("bob to take over", lambda: len(bob.held) == len(PARTITIONS))
        took_s = time.monotonic() - killed
        view = self._settled(dict.fromkeys(PARTITIONS, "bob"))
        say(
            f"Its session is over; {BOB} has all {len(PARTITIONS)} partitions, {took_s:.1f} s after the kill,"
        )
        say("and goes on where each of them was committed last.")
        require_kept(ada.acknowledged, ada.sent, bob.held, "taken over")
        rows = {"held before": before, "held now": view.owners}
        offsets = {"ada's last commit": ada.acknowledged, "bob goes on at": bob.held}
        self._screen.table(PARTITIONS, {**rows, **offsets})
