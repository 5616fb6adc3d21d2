# SPDX-License-Identifier: Apache-2.0
"""The processes of a gateway and the one that stands by, as their supervisor has them; a launcher in memory."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from subprocess import run
from typing import Any, Final

import pytest

from coordinator.config import Settings
from coordinator.runtime.tasks import Tasks
from coordinator.topology.gateway_view import GatewayView, ServingNode
from coordinator.workers import messages
from coordinator.workers.channel import Channel
from coordinator.workers.gateway_process_pool import SPARE, GatewayProcessPool
from coordinator.workers.liveness import OsProcessSnapshot
from tests.partitions.running import eventually, turns
from tests.simulation.loop import SimulatedLoop
from tests.workers.in_process import KILLED, Pulse, connect

VIEW: Final = GatewayView((ServingNode(1_000_001, "gateway.example", 9092, "/private.sock"),))
SETTINGS: Final = Settings(gateway_workers=2, gateway_spare=True)


class Launched:
    """A process that serves as soon as it is welcome, and ends as it is asked to."""

    def __init__(self, pid: int, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self.pid = pid
        self.number = number
        self.heard: list[Any] = []
        self.channel: Channel[messages.ToGateway] = Channel(messages.ToGateway, self._got, lambda _: None)
        self.pulse = Pulse()
        self._ended: asyncio.Future[int] = loop.create_future()

    def _got(self, message: messages.ToGateway) -> None:
        self.heard.append(message)
        match message:
            case messages.GatewayStart():
                self.channel.send(messages.GatewayListening())
            case messages.Stop():
                self.end(0)

    def end(self, status: int) -> None:
        if not self._ended.done():
            self._ended.set_result(status)
            self.channel.close()

    def read_system_state(self) -> OsProcessSnapshot | None:
        return OsProcessSnapshot("S", 0)

    def kill(self) -> None:
        self.end(KILLED)

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    @property
    def is_running(self) -> bool:
        return not self._ended.done()


class InMemory:
    """A launcher, and the gateways that it starts."""

    def __init__(self, settings: Settings) -> None:
        self.all: list[Launched] = []
        self.refuses = False
        """Whether no process can be started."""
        self.may_launch = asyncio.Event()
        """Without it a launch takes its time."""
        self.may_launch.set()
        self._pids = count(1)
        self.serving: list[int] = []
        """How many served, at each change."""
        self.tasks = Tasks()
        self._loop = asyncio.get_running_loop()
        self.gateways = GatewayProcessPool(
            settings,
            self._loop,
            self.tasks,
            self.launch,
            on_broker_seen=lambda: None,
            on_changed=lambda: self.serving.append(self.gateways.serving_count),
            on_question=lambda asked, reply: reply(messages.NodesHaveAnswered(asked.request, [])),
        )

    async def launch(self, node_id: int, channel: asyncio.Protocol, pulse: asyncio.Protocol) -> Launched:
        if self.refuses:
            raise OSError("no process can be started")
        await self.may_launch.wait()
        launched = Launched(next(self._pids), node_id, self._loop)
        connect(self._loop, channel, launched.channel)
        connect(self._loop, pulse, launched.pulse)
        self.all.append(launched)
        return launched

    async def spare(self) -> Launched:
        """The process that stands by, once there is one which knows what to import."""
        await eventually(
            lambda: SPARE in self.gateways.fleet.running and bool(self._of(SPARE).heard), "a spare"
        )
        return self._of(SPARE)

    def _of(self, index: int) -> Launched:
        pid = self.gateways.fleet.running[index].pid
        return next(each for each in self.all if each.pid == pid)

    def numbered(self, index: int) -> Launched:
        """The process with this number."""
        return self._of(index)


@asynccontextmanager
async def gateways(settings: Settings = SETTINGS) -> AsyncIterator[InMemory]:
    memory = InMemory(settings)
    memory.gateways.send_view(VIEW)
    await memory.gateways.start()
    try:
        yield memory
    finally:
        await memory.gateways.stop()
        memory.tasks.cancel()
        assert not any(each.is_running for each in memory.all)


async def test_the_spare_takes_the_place_of_one_that_dies() -> None:
    async with gateways() as memory:
        spare = await memory.spare()
        assert spare.heard == [messages.GatewayStandBy(SETTINGS)]
        assert memory.gateways.serving_count == 2
        memory.numbered(1).kill()
        await eventually(
            lambda: memory.gateways.serving_count == 2 and memory.numbered(1) is spare, "the spare to serve"
        )
        welcome = spare.heard[1]
        assert isinstance(welcome, messages.GatewayStart)
        assert (welcome.index, welcome.view) == (1, VIEW)
        assert (await memory.spare()) is not spare
        assert len(memory.all) == 4
        assert memory.serving == [1, 2, 1, 2]


async def test_a_spare_that_dies_is_replaced_and_no_gateway_is_missed() -> None:
    async with gateways() as memory:
        spare = await memory.spare()
        spare.kill()
        await eventually(lambda: memory.all[-1] is not spare, "another spare")
        assert (await memory.spare()) is not spare
        assert set(memory.serving) == {1, 2}
        assert len(memory.all) == 4


async def test_where_all_die_at_once_one_is_replaced_by_the_spare_and_the_others_by_new_ones() -> None:
    async with gateways() as memory:
        spare = await memory.spare()
        for index in (0, 1):
            memory.numbered(index).kill()
        await eventually(lambda: memory.serving[-3:] == [0, 1, 2], "both to serve")
        assert spare in (memory.numbered(0), memory.numbered(1))
        assert (await memory.spare()) is not spare
        assert len(memory.all) == 5


async def test_a_process_that_cannot_be_started_is_tried_again() -> None:
    async with gateways() as memory:
        spare = await memory.spare()
        memory.refuses = True
        spare.kill()
        await eventually(lambda: SPARE not in memory.gateways.fleet.running, "the end of the spare")
        memory.refuses = False
        assert (await memory.spare()) is not spare


async def test_without_gateway_spare_a_new_process_is_started() -> None:
    settings = Settings(gateway_workers=1, gateway_spare=False)
    async with gateways(settings) as memory:
        memory.numbered(0).kill()
        await eventually(lambda: memory.serving[-2:] == [0, 1], "the next one")
        assert [each.number for each in memory.all] == [0, 0]


async def test_a_process_whose_launch_is_under_way_at_the_stop_is_killed() -> None:
    settings = Settings(gateway_workers=1, gateway_spare=False)
    async with gateways(settings) as memory:
        memory.may_launch.clear()
        memory.numbered(0).kill()
        await eventually(lambda: memory.serving[-1] == 0, "its end")
        await turns(10)
        memory.gateways.stop_accepting()
        memory.may_launch.set()
        await eventually(lambda: len(memory.all) == 2, "the launch")
        await eventually(lambda: not memory.all[1].is_running, "its end: nobody asks it to stop")


def test_nothing_is_started_after_a_pause_in_which_the_stop_began() -> None:
    loop = SimulatedLoop()
    started: list[int] = []

    async def start_one(number: int) -> None:
        started.append(number)

    async def play() -> None:
        fleet = InMemory(SETTINGS).gateways.fleet
        fleet.start_one = start_one
        for _ in range(2):
            fleet.restarts.record_death(1)
        assert fleet.restarts.compute_restart_delay_s(1) > 0
        await fleet.start_again(1)
        again = loop.create_task(fleet.start_again(1))
        await asyncio.sleep(0)
        fleet.is_stopping = True
        await again
        assert started == [1]

    loop.run_until_complete(play())
    loop.close()


async def test_once_no_client_is_let_in_none_counts() -> None:
    async with gateways() as memory:
        memory.gateways.stop_accepting()
        assert memory.serving[-1] == 0


IMPORTS = """
import asyncio, sys
from coordinator.config import Address, Settings
from coordinator.host_resources import real_machine
from coordinator.workers import gateway_main
from coordinator.workers.questions.all_nodes_overview import AllNodesOverview
from coordinator.workers.questions.node_questions import NodeQuestions
from coordinator.workers.gateway_process import preload_gateway_modules, make_gateway, start_admin

async def main():
    settings = Settings(
        upstream_bootstrap_servers=(Address("127.0.0.1", 1),),
        metrics_listen=Address("127.0.0.1", 0),
        gateway_adopt=ADOPT,
    )
    preload_gateway_modules(settings)
    before = set(sys.modules)
    parts = make_gateway(settings, asyncio.get_running_loop(), real_machine(), lambda _id, _address: None)
    parts.gateway.start()
    overview = AllNodesOverview(NodeQuestions(lambda _question: None))
    admin = await start_admin(settings, parts, real_machine(), overview)
    print(sorted(set(sys.modules) - before), "coordinator.app" in sys.modules)
    await admin.close()
    await parts.gateway.stop()
    if parts.cluster is not None:
        await parts.cluster.close()

asyncio.run(main())
"""


@pytest.mark.process
@pytest.mark.parametrize("adopt", ["off", "first-use"])
def test_the_spare_has_imported_all_that_a_start_imports(adopt: str) -> None:
    code = IMPORTS.replace("ADOPT", repr(adopt))
    ran = run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout.strip(), ran.returncode) == ("[] False", 0), ran.stderr  # nor what only a worker needs
