# SPDX-License-Identifier: Apache-2.0
"""Sends the gateway's own requests to our coordinators: over their private sockets, one connection for each request."""

import asyncio
from socket import socket
from typing import TYPE_CHECKING, Final, TypeVar

from coordinator.gateway.address_book import AddressBook, OurNode
from coordinator.gateway.connector import Connector
from coordinator.runtime.one_step_per_turn import run_step_per_turn
from coordinator.upstream.adopt_group_client import (
    build_adopt_request,
    get_marker_from_response,
    parse_store_result,
)
from coordinator.upstream.adoption import FetchedGroupOffsets, LocalOwnershipState, StoreAttemptOutcome
from protocol.apis import ApiKey
from protocol.client_frames import LENGTH_BYTES, decode_answer, frame_request
from protocol.client_ids import GATEWAY_CLIENT_ID
from protocol.codec import Codec
from protocol.errors import ErrorCode, FrameTooLarge
from protocol.headers import RequestHeader
from protocol.message_codecs import find_message_codec
from protocol.newtypes import GroupId

if TYPE_CHECKING:
    from coordinator.api.private.adopt_group import AdoptGroupResponse

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")

ANSWER_BYTES_MAX: Final = 1 << 20
FIND_COORDINATOR_VERSION: Final = 4


class GroupTemporarilyUnserved(Exception):
    """No coordinator serves the group now; `code` is Kafka's error, which is temporary."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


class OurCoordinatorClient:
    """Adopts groups at our coordinators: an AdoptionTarget.

    Its methods raise OSError (also TimeoutError) and GroupTemporarilyUnserved.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, book: AddressBook, connector: Connector, timeout_s: float
    ) -> None:
        self._loop = loop
        self._book = book
        self._connector = connector
        self._timeout_s = timeout_s

    async def fetch_local_ownership_marker(self, group: GroupId) -> LocalOwnershipState:
        """Return the ownership marker that our coordinator has for the group."""
        answer = await self._adopt(group, None)
        _check(answer.error_code)
        return get_marker_from_response(answer)

    async def store_adopted_offsets(
        self, group: GroupId, reading: FetchedGroupOffsets
    ) -> StoreAttemptOutcome:
        """Have our coordinator take the group over, with the offsets that were read from the cluster.

        It refuses if it has the group already, or if the offsets were read too long ago.
        """
        answer = await self._adopt(group, reading)
        stored = parse_store_result(answer, reading)
        if stored is None:
            raise GroupTemporarilyUnserved(ErrorCode(answer.error_code))
        return stored

    async def _adopt(self, group: GroupId, reading: FetchedGroupOffsets | None) -> "AdoptGroupResponse":
        from coordinator.api.private.adopt_group import API, AdoptGroupRequest
        from protocol.kafka_python_messages import encode_request_in_steps

        request = build_adopt_request(AdoptGroupRequest, group, reading, iter)
        body = await run_step_per_turn(encode_request_in_steps(ApiKey.ADOPT_GROUP, 0, request))
        return await self._ask(
            await self._coordinator(group), ApiKey.ADOPT_GROUP, 0, API.schema.codecs[0], body
        )

    async def _coordinator(self, group: GroupId) -> OurNode:
        from protocol.kafka_python_messages import FindCoordinatorRequest

        nodes = list(self._book.nodes.values())
        if not nodes:
            raise GroupTemporarilyUnserved(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        version = FIND_COORDINATOR_VERSION
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
        codec = find_message_codec(ApiKey.FIND_COORDINATOR, version)
        body = [codec.encode_request(request)]
        answer = await self._ask(nodes[0], ApiKey.FIND_COORDINATOR, version, codec, body)
        (found,) = answer.coordinators
        _check(found.error_code)
        node = self._book.nodes.get(found.node_id)
        if node is None:  # it has ended since
            raise GroupTemporarilyUnserved(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return node

    async def _ask(
        self, node: OurNode, api: ApiKey, version: int, codec: Codec[Asked, Answered], body: list[bytes]
    ) -> Answered:
        """Send a request whose body is in pieces; return the response."""
        asked = frame_request(codec, RequestHeader(api, version, 1, GATEWAY_CLIENT_ID), body)
        async with asyncio.timeout(self._timeout_s):
            connected_socket = await self._connector.connect_to_our_node(node, None, None)
            with connected_socket.sock as sock:
                for piece in (connected_socket.preface + asked[0], *asked[1:]):
                    await self._loop.sock_sendall(sock, piece)
                length = int.from_bytes(await self._read(sock, LENGTH_BYTES), "big")
                if length > ANSWER_BYTES_MAX:
                    raise FrameTooLarge(f"an answer of {length} bytes from our own node {node.node_id}")
                frame = await self._read(sock, length)
        return decode_answer(codec, api, frame)

    async def _read(self, sock: socket, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = await self._loop.sock_recv(sock, count - len(data))
            if not more:
                raise ConnectionResetError("a node of ours has closed the connection")
            data += more
        return data


def _check(code: int) -> None:
    if code != ErrorCode.NONE:
        raise GroupTemporarilyUnserved(ErrorCode(code))
