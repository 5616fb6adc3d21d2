# SPDX-License-Identifier: Apache-2.0
"""A gateway's process: the channel to its supervisor, and the Gateway that carries out the messages from there."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator.catalogue import upstream_cluster_id_file
from coordinator.config import Address, Settings
from coordinator.gateway.address_book import OurNode
from coordinator.gateway.adoption import Adoption
from coordinator.gateway.certificate import find_expiry_s
from coordinator.gateway.config import GatewayConfig
from coordinator.gateway.gateway import Gateway
from coordinator.gateway.our_coordinator_client import OurCoordinatorClient
from coordinator.gateway.readiness import GatewayReadiness
from coordinator.gateway.routing_types import ClientSession, Route, TakeoverRequester
from coordinator.host_resources import HostResources
from coordinator.telemetry.logs import get_logger
from coordinator.topology.gateway_view import GatewayView
from coordinator.workers import messages
from coordinator.workers.process_settings import gateway_config
from coordinator.workers.questions.all_nodes_overview import AllNodesOverview
from coordinator.workers.questions.node_questions import NodeQuestions
from coordinator.workers.supervised_process import ProcessHooks, SupervisedProcess
from protocol.errors import ErrorCode
from storage.disk.filesystem import read_file
from storage.errors import StorageError

if TYPE_CHECKING:
    from coordinator.admin.admin_server import AdminServer
    from coordinator.upstream.cluster import UpstreamCluster

log = get_logger("gateway")


class GatewayParts(NamedTuple):
    """The parts of a gateway's process; without `adoption` the gateway takes no groups over, and only commands can."""

    gateway: Gateway
    readiness: GatewayReadiness
    adoption: Adoption | None = None
    cluster: "UpstreamCluster | None" = None


MakeGateway = Callable[
    [Settings, asyncio.AbstractEventLoop, HostResources, Callable[[int, Address], None]], GatewayParts
]
"""(settings, event loop, machine, a callback for brokers that were not known) -> the parts.

Raises OSError, ValueError and StorageError for settings and files that cannot be used."""


def make_gateway(
    settings: Settings,
    loop: asyncio.AbstractEventLoop,
    machine: HostResources,
    discovered: Callable[[int, Address], None],
) -> GatewayParts:
    """Return the parts of a gateway with these settings."""
    config = gateway_config(settings)
    if settings.gateway_adopt == "off":
        gateway = Gateway(config, loop, machine, discovered=discovered)
        return GatewayParts(gateway, _readiness(gateway, config, machine))
    from coordinator.gateway.cluster_groups import ClusterGroupAnswerer
    from coordinator.upstream.batched_group_requests import BatchedGroupRequester
    from coordinator.upstream.cluster import UpstreamCluster  # which imports a client's library
    from coordinator.upstream.config import config_from
    from coordinator.upstream.groups import UpstreamGroups

    cluster = UpstreamCluster(
        config_from(settings),
        read=partial(read_file, machine.fs),
        cluster_id=upstream_cluster_id_file.read(
            machine.fs, settings.data_dir
        ),  # groups come from no other cluster
    )

    def adopt(group: str, requester: TakeoverRequester) -> Coroutine[Any, Any, ErrorCode]:
        return adoption.adopt(group, requester)

    def answer_absent(
        session: ClientSession, route: Route, frame: bytes, groups: list[str]
    ) -> Coroutine[Any, Any, bytes | None]:
        return cluster_groups.answer(session, route, frame, groups)

    gateway = Gateway(config, loop, machine, adopt=adopt, answer_absent=answer_absent, discovered=discovered)
    timeout_s = settings.upstream_request_timeout_ms / 1000
    adoption = Adoption(
        OurCoordinatorClient(loop, gateway.book, gateway.connector, timeout_s),
        UpstreamGroups(cluster),
        gateway.tasks,
        machine.clock.mono_ms,
        take_live=settings.gateway_adopt_live_groups,
    )
    cluster_groups = ClusterGroupAnswerer(
        BatchedGroupRequester(cluster),
        adoption.is_known_as_ours,
        gateway.offloader,
        gateway.tasks,
        machine.clock.mono_ms,
    )
    return GatewayParts(gateway, _readiness(gateway, config, machine), adoption, cluster)


def _readiness(gateway: Gateway, config: GatewayConfig, machine: HostResources) -> GatewayReadiness:
    return GatewayReadiness(config, gateway.book, machine.clock, lambda: gateway.is_listening)


async def start_admin(
    settings: Settings, parts: GatewayParts, machine: HostResources, overview: AllNodesOverview
) -> "AdminServer | None":
    """Serve /metrics and /ready of this process, and the groups. Raises OSError with the setting in its text."""
    address = settings.metrics_listen
    if address is None:
        return None
    from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector

    from coordinator.admin.admin_server import AdminServer
    from coordinator.admin.metrics_page import MetricsEndpoint
    from coordinator.gateway.metrics import GatewayCollector

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    gateway = parts.gateway
    expiry_s = read_certificate_expiry_s(machine, settings.gateway_ssl_certificate_location)
    registry.register(GatewayCollector(lambda: gateway.counts, parts.adoption, expiry_s))
    admin = AdminServer(
        MetricsEndpoint(registry, _nothing, machine.clock.nanos),
        parts.readiness.collect_ready_fields,
        overview=overview,
    )
    try:
        await admin.start(address.host, address.port)
    except OSError as error:
        reason = f"metrics.listen: cannot listen on {address}: {error.strerror or error}"
        raise OSError(error.errno, reason) from error
    gateway.tasks.start(parts.readiness.run(), "ask brokers whether they can be reached")
    return admin


def read_certificate_expiry_s(machine: HostResources, certificate: Path | None) -> int | None:
    """Return when a certificate expires, in Unix seconds; None without one, or if that is not known."""
    if certificate is None:
        return None
    try:
        return find_expiry_s(read_file(machine.fs, certificate))
    except (OSError, ValueError) as error:  # clients can connect all the same
        log.warning("it is not known when the certificate expires", reason=str(error))
        return None


def preload_gateway_modules(settings: Settings) -> None:
    """Import all modules that a gateway of these settings imports at its start."""
    if settings.gateway_adopt != "off":
        import coordinator.gateway.cluster_groups
        import coordinator.upstream.groups
    if settings.metrics_listen is not None:
        import coordinator.admin.admin_server
        import coordinator.gateway.metrics  # noqa: F401


async def _nothing() -> None:
    """Prepare nothing before a scrape."""


class GatewayProcess(SupervisedProcess[messages.ToGateway]):
    """The gateway within its own process, which follows the supervisor's orders."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        machine: HostResources,
        hooks: ProcessHooks,
        make: MakeGateway = make_gateway,
    ) -> None:
        super().__init__(loop, hooks, messages.ToGateway)
        self._loop = loop
        self._machine = machine
        self._make = make
        self._parts: GatewayParts | None = None
        self._admin: AdminServer | None = None
        self._view = GatewayView()
        self._questions = NodeQuestions(self.channel.send)

    def _got(self, message: messages.ToGateway) -> None:
        match message:
            case messages.GatewayStandBy():
                preload_gateway_modules(message.settings)
            case messages.GatewayStart():
                self._welcome(message)
            case messages.UpdateGatewayView():
                self._show(message.view)
            case messages.ForgetGroup() if self._parts is not None and self._parts.adoption is not None:
                self._parts.adoption.forget_given_back_groups([message.group_id])
            case messages.GatewayStopAccepting() if self._parts is not None:
                self._parts.gateway.stop_accepting()
            case messages.NodeAnswerPassedOn() | messages.NodesHaveAnswered():
                self._questions.receive(message)
            case messages.Stop():
                self._tasks.start(self._stop(), "stop")

    def _welcome(self, welcome: messages.GatewayStart) -> None:
        settings = welcome.settings
        self._hooks.configure(settings, f"gateway-{welcome.index}")
        self._hooks.set_stall_ended_callback(settings.worker_timeout_ms, _stalled)
        self._view = welcome.view
        self._tasks.start(self._start(settings), "start")

    async def _start(self, settings: Settings) -> None:
        try:
            self._parts = self._make(settings, self._loop, self._machine, self._discovered)
            self._show(self._view)
            self._parts.gateway.start()
            self._admin = await start_admin(
                settings, self._parts, self._machine, AllNodesOverview(self._questions)
            )
        except (OSError, ValueError, StorageError) as error:
            self._parts = None
            self._cannot_serve((isinstance(error, OSError) and error.strerror) or str(error))
            return
        gc.freeze()  # the objects made so far stay, and no collection need walk them
        self.channel.send(messages.GatewayListening())

    def _show(self, view: GatewayView) -> None:
        self._view = view
        if self._parts is None:
            return
        gateway = self._parts.gateway
        gateway.book.offsets_topic_id = view.offsets_topic_id
        gateway.book.cluster_id = view.cluster_id
        gateway.set_brokers_and_listen({each.node_id: Address(each.host, each.port) for each in view.brokers})
        gateway.set_our_nodes(
            {
                each.node_id: OurNode(each.node_id, Address(each.host, each.port), Path(each.socket))
                for each in view.nodes
            }
        )

    def _discovered(self, _node_id: int, _address: Address) -> None:
        self.channel.send(messages.UnknownBrokerSeen())

    async def _stop(self) -> None:
        if self._admin is not None:
            await self._admin.close()
        if self._parts is not None:
            await self._parts.gateway.stop()
            if self._parts.cluster is not None:
                await self._parts.cluster.close()
        self.ended.set_result(0)


def _stalled() -> None:
    log.warning("the event loop was blocked")
