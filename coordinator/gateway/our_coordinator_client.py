# SPDX-License-Identifier: Apache-2.0
"""Sends the gateway's own requests to our coordinators: over their private sockets, one connection for each request."""

import asyncio
from socket import socket
from typing import Final, TypeVar

from coordinator.cluster_requests.groups import find_coordinators
from coordinator.cluster_requests.request import ClusterRequest, read_at_once
from coordinator.cluster_requests.retrying import RetryLater, raise_for_code
from coordinator.gateway.address_book import AddressBook, OurNode
from coordinator.gateway.connector import Connector
from coordinator.migration.model import ClusterReading, Ownership
from coordinator.migration.private_requests import adopt, find_ownership
from coordinator.runtime.one_step_per_turn import run_step_per_turn
from protocol.client_frames import LENGTH_BYTES, decode_answer, frame_request
from protocol.client_ids import GATEWAY_CLIENT_ID
from protocol.errors import ErrorCode, FrameTooLarge
from protocol.headers import RequestHeader
from protocol.message_codecs import find_message_codec
from protocol.newtypes import GroupId

T = TypeVar("T")

ANSWER_BYTES_MAX: Final = 1 << 20


class OurCoordinatorClient:
    """Adopts groups at our coordinators: an AdoptionTarget.

    Its methods raise OSError (also TimeoutError), RetryLater and RefusedByCluster.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, book: AddressBook, connector: Connector, timeout_s: float
    ) -> None:
        self._loop = loop
        self._book = book
        self._connector = connector
        self._timeout_s = timeout_s

    async def find_ownership(self, group: GroupId) -> Ownership:
        """Return whether our coordinator has taken the group over."""
        return await self._ask_coordinator(group, find_ownership(group))

    async def adopt(self, group: GroupId, reading: ClusterReading) -> Ownership:
        """Have our coordinator take the group over, with the offsets that were read from the cluster.

        It refuses if it has the group already, or if the offsets were read too long ago.
        """
        return await self._ask_coordinator(group, adopt(group, reading, iter))

    async def _ask_coordinator(self, group: GroupId, request: ClusterRequest[T]) -> T:
        doing = f"finding the coordinator of group {group} here"
        nodes = list(self._book.nodes.values())
        if not nodes:
            raise RetryLater(doing, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        (found,) = await self._ask(nodes[0], find_coordinators([group]))
        raise_for_code(found.error_code, None, doing)
        node = self._book.nodes.get(found.node_id)
        if node is None:  # it has ended since
            raise RetryLater(doing, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return await self._ask(node, request)

    async def _ask(self, node: OurNode, request: ClusterRequest[T]) -> T:
        """Send a request, which is encoded in steps; return what is read from the response."""
        from protocol.kafka_python_messages import encode_request_in_steps

        api, version = request.api, request.versions.max
        body = await run_step_per_turn(encode_request_in_steps(api, version, request.build(version)))
        codec = find_message_codec(api, version)
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
        return read_at_once(request.read, decode_answer(codec, api, frame))

    async def _read(self, sock: socket, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = await self._loop.sock_recv(sock, count - len(data))
            if not more:
                raise ConnectionResetError("a node of ours has closed the connection")
            data += more
        return data
