# SPDX-License-Identifier: Apache-2.0
"""What an operator's command asks our nodes over their private sockets: the port `Here` of moving groups."""

from typing import TYPE_CHECKING, Any, Final, TypeVar

from coordinator.cluster_requests.model import Offsets
from coordinator.cluster_requests.offsets import fetch_offsets_of_group
from coordinator.cluster_requests.request import ClusterRequest, read_at_once
from coordinator.cluster_requests.retrying import RefusedByCluster, RetryLater
from coordinator.migration.model import ClusterReading, Ownership
from coordinator.migration.private_requests import (
    CloseGroupStep,
    adopt,
    close_group,
    find_ownership,
    give_back_group,
)
from coordinator.runtime.sockets import private_socket_path
from protocol.apis import ApiKey
from protocol.client_frames import decode_answer, encode_request
from protocol.errors import ErrorCode, error_name
from protocol.headers import RequestHeader
from protocol.message_codecs import find_message_codec
from protocol.newtypes import GroupId
from protocol.proxy_header import ProxyHeader, encode_proxy_header
from tests.simulation.gateway.messages import read_answer, request
from tests.simulation.network import ClientEnd, Lost
from tests.simulation.settings import ROOT

if TYPE_CHECKING:
    from tests.simulation.gateway.world import GatewayWorld

T = TypeVar("T")

ANSWER_S: Final = 20.0
NAME: Final = "operator"


class NotNow(Exception):
    """A node cannot say now."""


class OurNodes:
    """Our nodes; a connection for each question. Raises NotNow and Lost."""

    def __init__(self, world: "GatewayWorld") -> None:
        self._world = world

    async def find_ownership(self, group: GroupId) -> Ownership:
        return await self._asked(group, find_ownership(group))

    async def adopt(self, group: GroupId, reading: ClusterReading) -> Ownership:
        return await self._asked(group, adopt(group, reading))

    async def check_give_back(self, group: GroupId) -> ErrorCode:
        return await self._asked(group, close_group(group, CloseGroupStep.ASK))

    async def close_for_give_back(self, group: GroupId) -> ErrorCode:
        return await self._asked(group, close_group(group, CloseGroupStep.CLOSE))

    async def reopen_group(self, group: GroupId) -> None:
        try:
            await self._asked(group, close_group(group, CloseGroupStep.REOPEN))
        except (NotNow, Lost):
            return  # it opens by itself

    async def remove_group_if_unchanged(self, group: GroupId, offsets: Offsets) -> ErrorCode:
        return await self._asked(group, give_back_group(group, offsets))

    async def fetch_all_offsets(self, group: GroupId) -> Offsets:
        return await self._asked(group, fetch_offsets_of_group(group, "reading offsets"))

    # --- who is asked ---

    async def _asked(self, group: GroupId, request: ClusterRequest[T]) -> T:
        end = await self._coordinator(group)
        version = request.versions.max
        codec = find_message_codec(request.api, version)
        frame = encode_request(codec, RequestHeader(request.api, version, 1, NAME), request.build(version))
        end.send(frame)
        answer = await end.receive(ANSWER_S)
        end.drop()
        try:
            return read_at_once(request.read, decode_answer(codec, request.api, answer))
        except (RetryLater, RefusedByCluster) as error:
            raise NotNow(error_name(error.code)) from None

    async def _coordinator(self, group: GroupId) -> ClientEnd:
        for node in self._world.nodes:
            try:
                end = self._connect(node.settings.node_id)
            except Lost:
                continue
            asked = {"key_type": 0, "coordinator_keys": [group]}
            (found,) = (await _ask(end, ApiKey.FIND_COORDINATOR, 4, **asked)).coordinators
            end.drop()
            if found.error_code:
                raise NotNow(ErrorCode(found.error_code).name)
            return self._connect(found.node_id)
        raise NotNow("no node serves")

    def _connect(self, node_id: int) -> ClientEnd:
        end = self._world.network.connect(str(private_socket_path(ROOT, node_id)))
        end.send(encode_proxy_header(ProxyHeader(None, None)))
        return end


async def _ask(end: ClientEnd, api: ApiKey, version: int, **fields: Any) -> Any:
    end.send(request(api, version, 1, NAME, **fields))
    return read_answer(api, version, await end.receive(ANSWER_S))
