# SPDX-License-Identifier: Apache-2.0
"""A scripted Kafka node on a loopback port: it answers what a test tells it to."""

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from protocol.apis import ApiKey
from protocol.headers import RequestHeader, decode_request_header, encode_response
from protocol.kafka_python_messages import ApiVersionsResponse
from protocol.message_codecs import find_message_codec
from protocol.proxy_header import HEAD_BYTES
from tests.support.apis import SUPPORTED

Answer = Callable[[Any, int], Any]
"""(request, version) → response; None closes the connection, and SILENCE reads on without a response."""
SILENCE = object()


class FakeNode:
    """Listens from its making on; `answers` may be changed at any time, `asked` says what came."""

    def __init__(
        self, offered: dict[ApiKey, tuple[int, int]] | None = None, listener: socket.socket | None = None
    ) -> None:
        self.answers: dict[ApiKey, Answer] = {ApiKey.API_VERSIONS: self._versions}
        self.asked: list[tuple[RequestHeader, Any]] = []
        self._offered = offered or {key: (versions.min, versions.max) for key, versions in SUPPORTED.items()}
        self._listener = listener or socket.create_server(("127.0.0.1", 0))
        self._address: Any = self._listener.getsockname()
        self.resets = 0
        """How many clients closed a connection without reading, and without sending all."""
        self._closing = False
        self._threads = [threading.Thread(target=self._accept)]
        self._connections: list[socket.socket] = []

    @property
    def port(self) -> int:
        return int(self._address[1])

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        with socket.socket(self._listener.family) as waking:  # up accept
            waking.connect(self._address)
        self._threads[0].join()
        self._listener.close()
        for connection in self._connections:
            with suppress(OSError):  # it is closed already where the client was done
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def count(self, api: ApiKey) -> int:
        """How many requests of this api came."""
        return sum(header.api_key == api for header, _ in self.asked)

    def last(self, api: ApiKey) -> Any:
        """The newest request of this api."""
        return [request for header, request in self.asked if header.api_key == api][-1]

    def _versions(self, _request: Any, _version: int) -> Any:
        offers = [
            ApiVersionsResponse.ApiVersion(api_key=int(key), min_version=low, max_version=high)
            for key, (low, high) in self._offered.items()
        ]
        return ApiVersionsResponse(error_code=0, api_keys=offers)

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._closing:
                connection.close()
                return
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            self._answer(connection)
        except ConnectionError:  # a client that Ctrl-C ends takes no answer any more
            self.resets += 1

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            if connection.family == socket.AF_UNIX:  # the private socket of a node: a header comes first
                (rest,) = struct.unpack(">14xH", stream.read(HEAD_BYTES))
                stream.read(rest)
            while len(head := stream.read(4)) == 4:
                frame = stream.read(struct.unpack(">i", head)[0])
                api_key, version = struct.unpack_from(">hh", frame)
                api = ApiKey(api_key)
                codec = find_message_codec(api, version)
                header, pos = decode_request_header(frame, codec.flexible)
                request = codec.decode_request(frame, pos)
                self.asked.append((header, request))
                response = self.answers[api](request, header.api_version)
                if response is None:
                    return
                if response is SILENCE:
                    continue
                flexible = codec.flexible and api is not ApiKey.API_VERSIONS
                body = codec.encode_response(response)
                connection.sendall(encode_response(header.correlation_id, body, flexible))
