# SPDX-License-Identifier: Apache-2.0
"""A request in the form in which aiokafka's connection takes its own requests, and its response."""

import io
from dataclasses import dataclass
from typing import Any

from coordinator.cluster_requests.request import ClusterRequest
from coordinator.config import Address
from coordinator.upstream.errors import UpstreamLacksApiVersion, UpstreamNotKafka
from protocol.apis import ApiKey, VersionRange
from protocol.errors import ProtocolError
from protocol.headers import RequestHeader, encode_request_header, has_flexible_response_header
from protocol.message_codecs import find_message_codec
from protocol.wire import skip_tags


@dataclass(frozen=True, slots=True)
class UpstreamResponse:
    """The bytes of a response: its body starts at `start` of `frame`."""

    api: ApiKey
    version: int
    frame: bytes
    start: int

    @property
    def encoded_body(self) -> memoryview:
        """The bytes of the body, for comparisons."""
        return memoryview(self.frame)[self.start :]


class RequestOverAiokafka:
    """Encodes one request, in a version that the broker has, and finds the body of its response."""

    def __init__(self, address: Address, question: ClusterRequest[Any]) -> None:
        self._address = address
        self._question = question
        self._version = 0
        self.API_KEY = int(question.api)
        self.RESPONSE_TYPE = _Rest

    def prepare(self, versions: dict[int, tuple[int, int]]) -> "RequestOverAiokafka":
        offered = versions.get(self.API_KEY)
        self._version = choose_version(
            self._address,
            self._question.api,
            None if offered is None else VersionRange(*offered),
            self._question.versions,
        )
        return self

    def build_request_header(self, correlation_id: int, client_id: str) -> "_EncodedHeader":
        header = RequestHeader(self.API_KEY, self._version, correlation_id, client_id)
        flexible = find_message_codec(self.API_KEY, self._version).flexible
        return _EncodedHeader(encode_request_header(header, flexible=flexible))

    def encode(self) -> bytes:
        message = self._question.build(self._version)
        return find_message_codec(self.API_KEY, self._version).encode_request(message)

    def parse_response_header(self, frame: io.BytesIO) -> "_ResponseHeader":
        return _ResponseHeader(int.from_bytes(frame.read(4), "big", signed=True))

    def find_response_body(self, rest: bytes) -> UpstreamResponse:
        flexible = find_message_codec(self.API_KEY, self._version).flexible
        try:
            start = skip_tags(rest, 0) if has_flexible_response_header(self.API_KEY, flexible) else 0
        except (ProtocolError, IndexError):
            raise UpstreamNotKafka(
                self._address, f"sent what is no {self._question.api.name} response of Kafka"
            ) from None
        return UpstreamResponse(self._question.api, self._version, rest, start)


class _EncodedHeader:
    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded

    def encode(self) -> bytes:
        return self._encoded


class _ResponseHeader:
    def __init__(self, correlation_id: int) -> None:
        self.correlation_id = correlation_id


class _Rest:
    """Returns the bytes after the correlation id, not decoded."""

    @staticmethod
    def decode(frame: io.BytesIO) -> bytes:
        return frame.read()


def choose_version(address: Address, api: ApiKey, offered: VersionRange | None, needed: VersionRange) -> int:
    """Return the newest version that both ranges have. Raises UpstreamLacksApiVersion if there is none."""
    if offered is None or offered.max < needed.min or offered.min > needed.max:
        raise UpstreamLacksApiVersion(address, api, offered, needed)
    return min(offered.max, needed.max)
