# SPDX-License-Identifier: Apache-2.0
"""The cluster as a whole: its brokers, and requests to any of them, to one, or to a group's coordinator."""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from coordinator.cluster_requests.groups import find_coordinators
from coordinator.cluster_requests.request import ClusterRequest
from coordinator.cluster_requests.retrying import (
    RefusedByCluster,
    RetryLater,
    call_with_retries,
    raise_for_code,
)
from coordinator.cluster_requests.topics import metadata
from coordinator.config import Address
from coordinator.runtime.one_step_per_turn import run_step_per_turn
from coordinator.upstream.aiokafka_request import UpstreamResponse
from coordinator.upstream.broker_connection import (
    BrokerConnection,
    Credentials,
    decode_answer_in_turns,
)
from coordinator.upstream.config import GATEWAY_NODE_ID_FIRST, ReadFile, UpstreamConfig
from coordinator.upstream.errors import (
    OtherCluster,
    RetryTimeout,
    Unreachable,
    UpstreamError,
    UpstreamIsOurselves,
    UpstreamNotKafka,
    UpstreamRequestRefused,
    UpstreamTimeout,
    parse_error_code,
)
from protocol.bounds import REMEMBERED_NAME_MAX
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from coordinator.cluster_requests.groups import Coordinators
    from protocol.kafka_python_messages import MetadataResponse

T = TypeVar("T")

BROKERS_MAX: Final = 2_000
"""The most brokers: each takes a port in each gateway, and a connection that checks that it is alive."""
COORDINATORS_MAX: Final = 20_000
"""The most groups whose coordinators are remembered: a group id and a broker id each."""


@dataclass(frozen=True, slots=True)
class UpstreamBroker:
    """One broker of the cluster, at the address that it gives to clients."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        """The address at which clients reach the broker."""
        return Address(self.host, self.port)


class UpstreamCluster:
    """Sends requests to one cluster. Any number of tasks may use it at once; connections are opened on demand.

    A broker that is gone is skipped, and the servers of `upstream.bootstrap.servers` are always tried, too: so a
    cluster is found again after all its brokers were away.
    """

    def __init__(
        self,
        config: UpstreamConfig,
        *,
        read: ReadFile,
        ours: Collection[Address] = (),
        cluster_id: str | None = None,
    ) -> None:
        """Prepare for a cluster without connecting.

        `read` reads the files with credentials. `ours` are the addresses on which this node listens: a cluster at
        one of them is refused. `cluster_id` is the id that the cluster must have, None for any, which then must
        stay the same. Raises ConfigError if `upstream.ssl.ca.location` cannot be read.
        """
        self._config = config
        self._keys = Credentials(config, read)
        self._ours = ours
        self._links: dict[Address, BrokerConnection] = {}
        self._opening: dict[Address, asyncio.Lock] = {}
        self._preferred: Address | None = None
        self._coordinators: dict[str, int] = {}
        self.cluster_id = cluster_id
        """The cluster's id; None before the first metadata response."""
        self.brokers: Mapping[int, UpstreamBroker] = {}
        """The brokers by id, from the newest metadata response."""

    # --- from the start to the end ---

    async def connect(self) -> None:
        """Find the cluster, and check that it can be used.

        Raises UpstreamError: of all the servers' errors the one with the highest rank. One that is `lasting` stays
        until a setting or the cluster is changed.
        """
        await self._refuse_ourselves()
        await self.refresh()

    async def close(self) -> None:
        """Close all connections; requests that are under way end as Unreachable."""
        links = list(self._links.values())
        self._links.clear()
        await asyncio.gather(*(link.close() for link in links))

    # --- questions ---

    async def refresh(self) -> Mapping[int, UpstreamBroker]:
        """Request the list of brokers, and return it. Raises UpstreamError."""
        await self.fetch_metadata([])
        return self.brokers

    async def fetch_metadata(
        self, topics: list[str] | None, *, node_id: int | None = None
    ) -> "MetadataResponse":
        """Request a broker's metadata of topics (None for all), without creating any; remember the brokers.

        Raises UpstreamError.
        """
        response = await self.send_and_read(metadata(topics), node_id=node_id)
        self.check_and_update_brokers(response)
        return response

    async def fetch_encoded_metadata(
        self, topics: list[str] | None, *, node_id: int | None = None
    ) -> UpstreamResponse:
        """Return the response of `fetch_metadata`, but not decoded, and not checked by `check_and_update_brokers`."""
        return await self.send_request(metadata(topics), node_id=node_id)

    def check_and_update_brokers(self, response: "MetadataResponse") -> None:
        """Remember the brokers of a response. Raises UpstreamIsOurselves, OtherCluster and UpstreamNotKafka."""
        if self.cluster_id is None:
            self.cluster_id = response.cluster_id
        elif response.cluster_id != self.cluster_id:
            raise OtherCluster(self.last_answering_address, response.cluster_id, self.cluster_id)
        if len(response.brokers) > BROKERS_MAX:
            raise UpstreamNotKafka(
                self.last_answering_address,
                f"names {len(response.brokers)} brokers; {BROKERS_MAX} can be served",
            )
        brokers = {
            each.node_id: UpstreamBroker(each.node_id, each.host, each.port, each.rack)
            for each in response.brokers
        }
        if brokers and max(brokers) >= GATEWAY_NODE_ID_FIRST:
            raise UpstreamIsOurselves(
                f"{self.last_answering_address} is a gateway of Groupkeeper, not the cluster itself"
            )
        if brokers:  # a broker that has just started may know none yet
            self.brokers = brokers

    async def send_request(
        self, question: ClusterRequest[Any], *, node_id: int | None = None
    ) -> UpstreamResponse:
        """Send a request to one broker, or to any. Raises UpstreamError: Unreachable if `node_id` is no broker now."""
        if node_id is None:
            return await self._ask_any(question)
        broker = self.brokers.get(node_id)
        if broker is None:
            raise Unreachable(f"broker {node_id}", "the cluster has no such broker now")
        return await self._ask_at(broker.address, question)

    async def send_and_read(self, question: ClusterRequest[T], *, node_id: int | None = None) -> T:
        """Send a request to broker `node_id`, or to any, and return what is read from the response.

        Raises UpstreamError, and what reading raises.
        """
        response = await decode_answer_in_turns(
            await self.send_request(question, node_id=node_id), self.last_answering_address
        )
        return await run_step_per_turn(question.read(response))

    async def call_coordinator_once(self, group: str, question: ClusterRequest[T]) -> T:
        """Send a request to a group's coordinator, and return what is read from the response.

        Raises UpstreamError, RefusedByCluster, and RetryLater while there is no coordinator.
        """
        node_id = await self.look_up_coordinator(group)
        try:
            return await self.send_and_read(question, node_id=node_id)
        except Unreachable:
            self.forget_coordinator(group)
            raise RetryLater(
                f"asking the coordinator of group {group}", ErrorCode.COORDINATOR_NOT_AVAILABLE
            ) from None
        except RetryLater as answer:
            if answer.code == ErrorCode.NOT_COORDINATOR:
                self.forget_coordinator(group)
            raise

    async def look_up_coordinators(
        self, groups: Iterable[str]
    ) -> tuple[dict[str, int], dict[str, ErrorCode]]:
        """Return the broker ids of groups' coordinators, and the errors of the other groups. Raises UpstreamError."""
        found: dict[str, int] = {}
        errors: dict[str, ErrorCode] = {}
        missing: list[str] = []
        for group in groups:
            known = self._coordinators.get(group)
            if known is None:
                missing.append(group)
            else:
                found[group] = known
        for row in await self._find_coordinators(missing) if missing else ():
            if row.error_code == ErrorCode.NONE:
                found[row.key] = int(row.node_id)
            else:
                errors[row.key] = parse_error_code(row.error_code)
        return found, errors

    def forget_coordinator(self, group: str) -> None:
        """Forget the group's coordinator, so that it is looked up again: it has moved, or is unreachable."""
        self._coordinators.pop(group, None)

    async def call_with_retries(self, doing: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Repeat `attempt` while it raises RetryLater; after `upstream.request.timeout.ms` raise RetryTimeout.

        A RefusedByCluster that it raises becomes an UpstreamRequestRefused.
        """
        timeout_s = self._config.request_timeout_ms / 1000
        try:
            return await call_with_retries(attempt, asyncio.get_running_loop().time, asyncio.sleep, timeout_s)
        except RetryLater as answer:
            raise RetryTimeout(doing, answer.code) from None
        except RefusedByCluster as answer:
            raise UpstreamRequestRefused(answer.doing, answer.code, answer.message) from None

    # --- connections ---

    @property
    def last_answering_address(self) -> str:
        """The address of the server that responded last, for messages."""
        return str(self._preferred or self._config.bootstrap_servers[0])

    async def _ask_any(self, question: ClusterRequest[Any]) -> UpstreamResponse:
        """Ask one broker after the other, first the one that responded last, so that views come from one broker."""
        worst: UpstreamError | None = None
        for address in self._candidates():
            try:
                answer = await self._ask_at(address, question)
            except UpstreamError as error:
                if worst is None or error.rank > worst.rank:
                    worst = error
                continue
            self._preferred = address
            return answer
        assert worst is not None, "there is always a bootstrap server"
        raise worst

    def _candidates(self) -> list[Address]:
        known = [broker.address for broker in self.brokers.values()]
        preferred = [] if self._preferred is None else [self._preferred]
        return list(dict.fromkeys([*preferred, *known, *self._config.bootstrap_servers]))

    async def _ask_at(self, address: Address, question: ClusterRequest[Any]) -> UpstreamResponse:
        link = await self._link(address)
        was_used = link.used
        try:
            return await link.request_encoded_response(question)
        except UpstreamTimeout:
            raise  # the broker may still do what it was asked
        except Unreachable:
            if not was_used or link.is_open:
                raise
        # The broker had closed the idle connection.
        return await (await self._link(address)).request_encoded_response(question)

    async def _link(self, address: Address) -> BrokerConnection:
        async with self._opening.setdefault(address, asyncio.Lock()):
            link = self._links.get(address)
            if link is None or not link.is_open:
                self._links.pop(address, None)
                link = self._links[address] = await BrokerConnection.open(address, self._config, self._keys)
            return link

    async def look_up_coordinator(self, group: str) -> int:
        """Return the broker id of a group's coordinator.

        Raises UpstreamError, RefusedByCluster, and RetryLater while there is none.
        """
        known = self._coordinators.get(group)
        if known is not None:
            return known
        (found,) = await self._find_coordinators([group])
        raise_for_code(found.error_code, found.error_message, f"finding the coordinator of group {group}")
        return int(found.node_id)

    async def _find_coordinators(self, groups: list[str]) -> "Coordinators":
        """Ask a broker for the coordinators of groups, and remember them. Raises UpstreamError."""
        rows = await self.send_and_read(find_coordinators(groups))
        found = {row.key: int(row.node_id) for row in rows if row.error_code == ErrorCode.NONE}
        places = {int(row.node_id): (row.host, row.port) for row in rows if row.error_code == ErrorCode.NONE}
        if any(self._place(node_id) != place for node_id, place in places.items()):
            await self.refresh()  # a broker that is new, or has come back at another address
        if len(self._coordinators) + len(found) > COORDINATORS_MAX:
            self._coordinators.clear()
        lasting = ((name, node_id) for name, node_id in found.items() if len(name) <= REMEMBERED_NAME_MAX)
        self._coordinators.update(islice(lasting, COORDINATORS_MAX))
        return rows

    def _place(self, node_id: int) -> tuple[str, int] | None:
        """Return the host and port of a broker; None if it is not known."""
        broker = self.brokers.get(node_id)
        return None if broker is None else (broker.host, broker.port)

    # --- ourselves ---

    async def _refuse_ourselves(self) -> None:
        ours = {place for address in self._ours for place in await _places(address)}
        for server in self._config.bootstrap_servers:
            if any(_is_same(place, own) for place in await _places(server) for own in ours):
                raise UpstreamIsOurselves(f"{server} is an address of this node itself")


Place = tuple[str, int]
"""An IP address and a port."""


async def _places(address: Address) -> set[Place]:
    if address.is_wildcard:
        return {("", address.port)}
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(address.host, address.port)
    except OSError:
        return set()
    return {(str(where[0]), address.port) for *_, where in found}


def _is_same(place: Place, own: Place) -> bool:
    """Return whether `own` listens at `place`; of a wildcard only loopback is known, the rest is found by node ids."""
    if place[1] != own[1]:
        return False
    return place[0] == own[0] or (own[0] == "" and ipaddress.ip_address(place[0].split("%")[0]).is_loopback)
