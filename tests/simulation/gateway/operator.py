# SPDX-License-Identifier: Apache-2.0
"""What an operator's command asks our nodes over their private sockets: the port `Here` of moving groups."""

from typing import TYPE_CHECKING, Any, Final

from coordinator.api.private import adopt_group, close_group, give_back_group
from coordinator.api.private.close_group import CloseGroupStep
from coordinator.cluster_requests.model import Offsets, TopicPartition, TransferredOffset
from coordinator.runtime.sockets import private_socket_path
from coordinator.upstream.adopt_group_client import (
    build_adopt_request,
    get_marker_from_response,
    parse_store_result,
)
from coordinator.upstream.adoption import (
    FetchedGroupOffsets,
    GiveBackReadiness,
    GroupRemovalOutcome,
    LocalOwnershipState,
    StoreAttemptOutcome,
    make_adoption_topic_structs,
)
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.headers import RequestHeader, encode_request_header
from protocol.newtypes import GroupId
from protocol.proxy_header import ProxyHeader, encode_proxy_header
from protocol.wire import skip_tags
from tests.simulation.gateway.messages import read_answer, request
from tests.simulation.network import ClientEnd, Lost
from tests.simulation.settings import ROOT

if TYPE_CHECKING:
    from tests.simulation.gateway.world import GatewayWorld

ANSWER_S: Final = 20.0
NAME: Final = "operator"
LEAVING: Final = {
    ErrorCode.NONE: GiveBackReadiness.READY,
    ErrorCode.NON_EMPTY_GROUP: GiveBackReadiness.LIVE,
    ErrorCode.GROUP_ID_NOT_FOUND: GiveBackReadiness.UNKNOWN,
}
ANSWERS: Final = {
    ErrorCode.NONE: GroupRemovalOutcome.GONE,
    ErrorCode.OFFSET_OUT_OF_RANGE: GroupRemovalOutcome.CHANGED,
    ErrorCode.NON_EMPTY_GROUP: GroupRemovalOutcome.LIVE,
    ErrorCode.GROUP_ID_NOT_FOUND: GroupRemovalOutcome.UNKNOWN,
}


class NotNow(Exception):
    """A node cannot say now."""


class OurNodes:
    """Our nodes; a connection for each question. Raises NotNow and Lost."""

    def __init__(self, world: "GatewayWorld") -> None:
        self._world = world

    async def fetch_local_ownership_marker(self, group: GroupId) -> LocalOwnershipState:
        return get_marker_from_response(await self._private(group, adopt_group.API, {"offsets": None}))

    async def store_adopted_offsets(
        self, group: GroupId, reading: FetchedGroupOffsets
    ) -> StoreAttemptOutcome:
        message = build_adopt_request(adopt_group.AdoptGroupRequest, group, reading)
        stored = parse_store_result(await self._asked(group, adopt_group.API, message), reading)
        if stored is None:
            raise NotNow("the group cannot be taken over")
        return stored

    async def fetch_give_back_readiness(self, group: GroupId) -> GiveBackReadiness:
        return await self._step(group, CloseGroupStep.ASK)

    async def close_group_to_clients(self, group: GroupId) -> GiveBackReadiness:
        return await self._step(group, CloseGroupStep.CLOSE)

    async def reopen_group(self, group: GroupId) -> None:
        try:
            await self._step(group, CloseGroupStep.REOPEN)
        except (NotNow, Lost):
            return  # it opens by itself

    async def _step(self, group: GroupId, step: CloseGroupStep) -> GiveBackReadiness:
        answer = await self._private(group, close_group.API, {"step": step})
        return LEAVING[_known(answer.error_code, LEAVING)]

    async def remove_given_back_group(self, group: GroupId, offsets: Offsets) -> GroupRemovalOutcome:
        kind = give_back_group.GiveBackGroupRequest.GivenTopic
        rows = list(make_adoption_topic_structs(offsets, kind, kind.GivenPartition))
        answer = await self._private(group, give_back_group.API, {"offsets": rows})
        return ANSWERS[_known(answer.error_code, ANSWERS)]

    async def fetch_all_offsets(self, group: GroupId) -> Offsets:
        end = await self._coordinator(group)
        groups = [{"group_id": group, "topics": None}]
        answer = await _ask(end, ApiKey.OFFSET_FETCH, 8, groups=groups)
        (found,) = answer.groups
        if found.error_code:
            raise NotNow(ErrorCode(found.error_code).name)
        return {
            TopicPartition(topic.name, part.partition_index): TransferredOffset(
                part.committed_offset, part.committed_leader_epoch, part.metadata or ""
            )
            for topic in found.topics
            for part in topic.partitions
            if part.committed_offset >= 0
        }

    # --- who is asked ---

    async def _private(self, group: GroupId, api: Any, values: dict[str, Any]) -> Any:
        return await self._asked(group, api, api.schema.request(version=0, group_id=group, **values))

    async def _asked(self, group: GroupId, api: Any, message: Any) -> Any:
        end = await self._coordinator(group)
        header = encode_request_header(RequestHeader(api.key, 0, 1, NAME), flexible=True)
        frame = header + api.schema.codecs[0].encode_request(message)
        end.send(len(frame).to_bytes(4, "big") + frame)
        answer = await end.receive(ANSWER_S)
        end.drop()
        return api.schema.codecs[0].decode_response(answer, skip_tags(answer, 4))

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


def _known(number: int, known: dict[ErrorCode, Any]) -> ErrorCode:
    error = ErrorCode(number)
    if error not in known:
        raise NotNow(error.name)
    return error
