# SPDX-License-Identifier: Apache-2.0
"""Members are judged by what they sent in time, also when the node was kept from reading it."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from time import monotonic, sleep

import pytest
import uvloop

from coordinator.net.fair_queue import FairQueue
from coordinator.net.input_barrier import InputBarrier
from coordinator.runtime.timers import Timers
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from tests.groups.harness import FakeClock
from tests.net import requests
from tests.net.process import Peer
from tests.partitions.running import node
from tests.support import raw
from tests.support.idle import idle
from tests.support.service import Service, serving
from tests.support.waiting import wait_until

SESSION_S = 1.5
MEMBERS = 20


async def test_a_heartbeat_that_waits_in_the_socket_keeps_the_session(tmp_path: Path) -> None:
    clock = FakeClock()
    async with node(tmp_path, clock=clock) as running:
        member, silent = await running.client(), await running.client()
        member_id, generation = await member.join_alone("speaks")
        gone_id, gone_generation = await silent.join_alone("is-silent")
        member.send(requests.heartbeat("speaks", member_id, generation))
        clock.passed_ms += 3_600_000
        running.app.deadlines._fire()  # as the loop does, before it has looked at its sockets
        beat = requests.answer(ApiKey.HEARTBEAT, 4, await member.receive())
        assert beat.error_code == ErrorCode.NONE
        await idle()
        assert await member.heartbeat("speaks", member_id, generation) is ErrorCode.NONE
        assert await silent.heartbeat("is-silent", gone_id, gone_generation) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_what_waits_in_a_socket_is_heard_first_on_any_loop(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """Asked by a timer and by a socket's call: they have different places in a turn of the loop."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        barrier = InputBarrier(FairQueue(FakeClock().nanos))
        ours, theirs = os.pipe()
        heard: list[str] = []
        judged = loop.create_future()

        def judge() -> None:
            heard.append("judged")
            judged.set_result(None)

        def ask() -> None:
            os.write(theirs, b"x")
            barrier.call_after_input(judge)

        loop.add_reader(ours, lambda: heard.append(os.read(ours, 1).decode()))
        for start in (loop.call_soon, lambda call: loop.call_later(0.001, call)):
            heard.clear()
            judged = loop.create_future()
            start(ask)
            await judged
            assert heard == ["x", "judged"]
        loop.remove_reader(ours)
        os.close(ours)
        os.close(theirs)

    loop = new_loop()
    try:
        loop.run_until_complete(run())
    finally:
        loop.close()


async def test_requests_that_the_end_of_a_turn_cut_off_are_heard_too() -> None:
    turns_of_one = FairQueue(FakeClock().nanos, 0)
    barrier = InputBarrier(turns_of_one)
    heard: list[str] = []

    def three(name: str, left: int = 3) -> None:
        heard.append(name)
        if left > 1:
            turns_of_one.go_on_later(lambda: three(name, left - 1), again=True)

    for name in "abc":
        turns_of_one.go_on_later(lambda name=name: three(name))  # type: ignore[misc]
    barrier.call_after_input(lambda: heard.append("judged"))
    await idle()
    assert all(
        heard.index("judged") > [at for at, who in enumerate(heard) if who == name][1] for name in "abc"
    )


async def test_deadlines_are_judged_by_the_moment_of_the_question() -> None:
    clock = FakeClock()
    asked: list[Callable[[], None]] = []
    timers = Timers(asyncio.get_running_loop(), clock, asked.append)
    judged: list[tuple[str, int]] = []

    def judge(name: str) -> None:
        judged.append((name, timers.deadline_cutoff_ms))

    timers.call_at(10, judge, "first")
    timers.call_at(25, judge, "second")
    clock.passed_ms = 20
    timers._fire()
    clock.passed_ms = 30
    (run,) = asked
    run()
    assert judged == [("first", 20)]
    timers._fire()
    asked[1]()
    assert judged == [("first", 20), ("second", 30)]
    timers.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    settings: dict[str, str | int] = {
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1_000,
        "log.flush": "os",
    }
    with serving(tmp_path, settings) as service:
        yield service


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    stat = Path(f"/proc/{pid}/stat")
    if stat.exists():
        wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")


def joined_alone(peer: Peer, group: str) -> tuple[Peer, str, str, int]:
    """Make `peer` the only member of a group; return it with the group, its member id and the generation."""
    joining = requests.join(group, version=3, session_ms=int(SESSION_S * 1e3))
    joined = requests.answer(ApiKey.JOIN_GROUP, 3, peer.ask(joining))
    assignments = {joined.member_id: b"all"}
    peer.ask(requests.sync(group, joined.member_id, joined.generation_id, assignments=assignments))
    return peer, group, joined.member_id, joined.generation_id


def test_members_of_a_process_that_was_stopped_for_longer_than_their_sessions(service: Service) -> None:
    """Those who sent heartbeats meanwhile stay; those who are gone for good do not."""
    with ExitStack() as stack:
        for attempt in count():
            began = monotonic()
            members = [
                joined_alone(stack.enter_context(Peer(service)), f"g{attempt}-{n}") for n in range(MEMBERS)
            ]
            joined_by = monotonic()
            stop(service.pid)
            if monotonic() - began < SESSION_S:
                break  # no session has ended before the stop
            os.kill(service.pid, signal.SIGCONT)
        silent, *speaking = members
        try:
            for peer, group, member_id, generation in speaking:
                peer.send(requests.heartbeat(group, member_id, generation))
            # The sessions of a real process end in real time: until all of the deadlines have passed.
            sleep(max(joined_by + 1.1 * SESSION_S - monotonic(), 0))
        finally:
            os.kill(service.pid, signal.SIGCONT)
        errors = [requests.answer(ApiKey.HEARTBEAT, 4, peer.receive()).error_code for peer, *_ in speaking]
        assert errors == [ErrorCode.NONE] * len(speaking)
        peer, group, member_id, generation = silent
        # Not at once: until it is judged, what it sends keeps its session, too.
        wait_until(
            lambda: not raw.describe_group(service.bootstrap, group).members, what="the end of its session"
        )
        beat = requests.answer(
            ApiKey.HEARTBEAT, 4, peer.ask(requests.heartbeat(group, member_id, generation))
        )
        assert beat.error_code == ErrorCode.UNKNOWN_MEMBER_ID
