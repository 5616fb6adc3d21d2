# SPDX-License-Identifier: Apache-2.0
"""ApiVersions v4 and v5 on the ports of a gateway; v5 names the cluster and the node that a client means (KIP-1242).

Brokers do not know our nodes, and older ones lack these versions. So these names are checked here, and a broker is
asked in a version that it has, without names.
"""

from functools import cache, partial
from typing import Final

from coordinator.api import api_versions
from coordinator.gateway import answers, rewriting
from coordinator.gateway.address_book import AddressBook
from coordinator.gateway.offload import Offloader, apply_change_to_whole_response, is_long
from coordinator.gateway.rewriting import OfferedVersions
from coordinator.gateway.routing_types import BROKER, HERE, LENGTH_BYTES, ClientSession, Route, Verdict
from protocol.apis import ApiKey
from protocol.client_frames import decode_answer, encode_request
from protocol.errors import ErrorCode
from protocol.headers import RequestHeader, decode_request_header
from protocol.kafka_python_messages import ApiVersionsRequest, ApiVersionsResponse
from protocol.message_codecs import find_message_codec

JUDGED_FROM: Final = 4
"""The first version that brokers before 3.9 lack."""
NAMELESS_MAX: Final = api_versions.MEANT_FROM - 1
"""The newest version that names neither cluster nor node."""

ERROR_AT: Final = 8
"""The position of the error code in a response, behind its length and correlation id, in every version."""
UNSUPPORTED_VERSION: Final = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")


class ApiVersionsHandler:
    """Answers ApiVersions from v4 on for the node that the client has connected to: a broker or one of ours."""

    def __init__(
        self, book: AddressBook, offered: OfferedVersions, offloader: Offloader, *, asks_for_login: bool
    ) -> None:
        """Report the versions in `offered`; `asks_for_login` if brokers accept no request before a login."""
        self._book = book
        self._changes = cache(partial(rewriting.make_api_versions_rewriter, offered))
        self._offloader = offloader
        self._asks_for_login = asks_for_login

    async def handle_request(self, session: ClientSession, route: Route, frame: bytes) -> Verdict:
        """Ask the broker, unless the request itself is wrong. Raises ProtocolError for an unreadable request."""
        request: ApiVersionsRequest = answers.decode_broker_request(frame)
        if not api_versions.is_valid(request, route.version):
            return _error(frame, request, ErrorCode.INVALID_REQUEST, route.version)
        # A broker checks the names only after the login, and closes the connection if it is asked twice before.
        is_checked = session.login_has_begun or not self._asks_for_login
        asked, answer = await self._ask(session, frame, request)
        if is_checked and not api_versions.is_for_this_node(request, self._book.cluster_id, session.node_id):
            return _error(frame, request, ErrorCode.REBOOTSTRAP_REQUIRED, route.version)
        work = partial(apply_change_to_whole_response, self._changes(asked, route.version), answer)
        made, _ = await self._offloader.run(session, work, is_long=is_long(answer))
        return Verdict(HERE, made)

    async def _ask(
        self, session: ClientSession, frame: bytes, request: ApiVersionsRequest
    ) -> tuple[int, bytes]:
        """Ask in the newest version that the broker has; return that version, and the response with its length."""
        answer = await session.send_own_request(BROKER, _nameless(frame, request, NAMELESS_MAX))
        newest = _newest_instead(answer)
        if newest is None:
            return NAMELESS_MAX, answer
        return newest, await session.send_own_request(BROKER, _nameless(frame, request, newest))


def _nameless(frame: bytes, request: ApiVersionsRequest, version: int) -> bytes:
    """Return the request in an older version, with its length and the correlation id of the client's request."""
    header, _ = decode_request_header(frame, True)
    older = ApiVersionsRequest(
        client_software_name=request.client_software_name,
        client_software_version=request.client_software_version,
    )
    codec = find_message_codec(ApiKey.API_VERSIONS, version)
    older_header = RequestHeader(ApiKey.API_VERSIONS, version, header.correlation_id, header.client_id)
    return encode_request(codec, older_header, older)


def _newest_instead(answer: bytes) -> int | None:
    """Return the newest version that the broker has, or None if it has that of the request (KIP-511).

    Brokers before 2.4 do not report it, and have version 0. Raises ProtocolError.
    """
    if answer[ERROR_AT : ERROR_AT + 2] != UNSUPPORTED_VERSION:
        return None
    codec = find_message_codec(ApiKey.API_VERSIONS, NAMELESS_MAX)
    response: ApiVersionsResponse = decode_answer(codec, ApiKey.API_VERSIONS, answer, LENGTH_BYTES)
    offered = (each.max_version for each in response.api_keys if each.api_key == ApiKey.API_VERSIONS)
    return min(next(offered, 0), NAMELESS_MAX - 1)


def _error(frame: bytes, request: ApiVersionsRequest, error: ErrorCode, version: int) -> Verdict:
    response = api_versions.error_response(request, error, version)
    body = find_message_codec(ApiKey.API_VERSIONS, version).encode_response(response)
    return Verdict(HERE, answers.make_response_with_body(frame, body))
