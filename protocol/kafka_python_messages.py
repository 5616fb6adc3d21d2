# SPDX-License-Identifier: Apache-2.0
"""All of kafka-python's messages, wrapped in this one place, some in newer versions.

The classes are kafka-python's: fields by snake-case name as keyword arguments, nested classes as attributes
(`MetadataResponse.MetadataResponseTopic`), uuids as `uuid.UUID` or None, authorized operations as a set of bits or
None. Give every array of a new message a list of its own: if one is left out, kafka-python gives the same default list
to all messages.

Importing this module imports all of kafka-python, which takes a fifth of a second: `protocol.message_codecs` does it
when the first message is not hot.
"""

from collections import Counter
from collections.abc import Generator, Mapping
from functools import cache, partial
from typing import Any, Final, TypeVar

from kafka.protocol.admin.acl import *
from kafka.protocol.admin.client_quotas import *
from kafka.protocol.admin.cluster import *
from kafka.protocol.admin.configs import *
from kafka.protocol.admin.groups import DescribeGroupsRequest as DescribeGroupsRequest
from kafka.protocol.admin.groups import DescribeGroupsResponse as DescribeGroupsResponse
from kafka.protocol.admin.groups import ListGroupsRequest as ListGroupsRequest
from kafka.protocol.admin.groups import ListGroupsResponse as ListGroupsResponse
from kafka.protocol.admin.topics import *
from kafka.protocol.admin.transactions import *
from kafka.protocol.admin.users import *
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer.fetch import *
from kafka.protocol.consumer.group import *
from kafka.protocol.consumer.metadata import *
from kafka.protocol.consumer.offsets import *
from kafka.protocol.metadata.find_coordinator import *
from kafka.protocol.metadata.metadata import *
from kafka.protocol.producer.produce import *
from kafka.protocol.producer.transaction import *
from kafka.protocol.sasl import *

from protocol.apis import ApiKey
from protocol.bounds import ITEMS_MAX, MOVED_MAX
from protocol.codec import ApiSchema, Codec
from protocol.errors import ErrorCode
from protocol.stepwise_message_reader import StepReader, read_message_in_steps, struct_reader
from protocol.stepwise_message_writer import StepwiseMessageWriter
from protocol.versions_beyond_kafka_python import *
from protocol.wire import MAX_INT32

# in quotes because TypeVar takes the truth value of a class, and this one's length fails
Request = TypeVar("Request", bound="ApiMessage")
Response = TypeVar("Response", bound="ApiMessage")
Message = TypeVar("Message", bound="ApiMessage")


_NEWER: Final[Mapping[int, tuple[Any, Any]]] = {
    ApiKey.API_VERSIONS: (ApiVersionsRequest, ApiVersionsResponse),
    ApiKey.DELETE_GROUPS: (DeleteGroupsRequest, DeleteGroupsResponse),
}


@cache
def find_request_and_response_classes(api_key: int) -> tuple[Any, Any]:
    """Return kafka-python's classes of an API's request and response, also of a hot API's; raises KeyError."""
    newer = _NEWER.get(api_key)
    if newer is not None:
        return newer
    request = response = None
    for cls in ApiMessage.__subclasses__():
        if api_key == cls.API_KEY and cls._class_version is None:
            request, response = (cls, response) if cls.is_request() else (request, cls)
    if request is None or response is None:
        raise KeyError(api_key)
    return request, response


@cache
def schema(api_key: int) -> ApiSchema[Any, Any]:
    """Return the messages of an API in kafka-python's classes; raises KeyError if it has none."""
    return build_schema(*find_request_and_response_classes(api_key))


def build_schema(request: type[Request], response: type[Response]) -> ApiSchema[Request, Response]:
    """Return the schema of the API to which these classes belong."""
    key = ApiKey(request.API_KEY)
    assert key == response.API_KEY, f"{request.name} and {response.name} are of different apis"
    low, high = request.valid_versions
    return ApiSchema(
        key,
        request,
        response,
        {version: _codec(key, version, request, response) for version in range(low, high + 1)},
    )


def _codec(
    key: ApiKey, version: int, request: type[Request], response: type[Response]
) -> Codec[Request, Response]:
    untyped: Any = request
    decode_response = _decode_api_versions if key is ApiKey.API_VERSIONS else _decode
    return Codec(
        partial(_decode_request, request, version),
        partial(_encode, response, version),
        partial(decode_response, response, version),
        partial(_encode, request, version),
        untyped.flexible_version_q(version),
        partial(_decode_request_in_steps, request, version),
    )


def encode_response_in_steps(
    api_key: int, version: int, message: Any, errors: Counter[int], bytes_max: int = MAX_INT32
) -> Generator[None, None, list[bytes]]:
    """Encode the body of a response in steps (`protocol.stepwise_message_writer`); returns its pieces in order.

    The response is kafka-python's also if the API is hot. The error codes in its arrays are counted in `errors`.
    Raises MessageTooLarge beyond `bytes_max`.
    """
    cls = find_request_and_response_classes(api_key)[1]
    _check(cls, message)
    writer = StepwiseMessageWriter(
        version, flexible=cls.flexible_version_q(version), bytes_max=bytes_max, errors=errors
    )
    return writer.write_message_in_steps(cls._struct, message)


def encode_request_in_steps(api_key: int, version: int, message: Any) -> Generator[None, None, list[bytes]]:
    """Encode the body of a request in steps (`protocol.stepwise_message_writer`); returns its pieces in order.

    The request is kafka-python's also if the API is hot. Raises MessageTooLarge beyond 2 GiB.
    """
    cls = find_request_and_response_classes(api_key)[0]
    _check(cls, message)
    flexible = cls.flexible_version_q(version)
    writer = StepwiseMessageWriter(version, flexible=flexible, bytes_max=MAX_INT32, errors=Counter())
    return writer.write_message_in_steps(cls._struct, message)


def decode_response_in_steps(api_key: int, version: int, body: bytes, pos: int) -> Generator[None, None, Any]:
    """Read the body of a response in steps of some hundred microseconds; returns kafka-python's message.

    Bytes after it are ignored. Raises ProtocolError only.
    """
    cls = find_request_and_response_classes(api_key)[1]
    return read_message_in_steps(_reader(cls, version), cls.name, body, pos)


def topics_by_name(response: MetadataResponse) -> dict[str, MetadataResponse.MetadataResponseTopic]:
    """Return the topics of a Metadata response by name, without those that have none."""
    return {topic.name: topic for topic in response.topics if topic.name is not None}


_OF_OUR_OWN: Final = frozenset({"AdoptGroupRequest", "GiveBackGroupRequest"})
_UNSUPPORTED_VERSION: Final = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")


def _decode_request(cls: type[Message], version: int, body: bytes, pos: int) -> Message:
    message: Message = _all_at_once(_decode_request_in_steps(cls, version, body, pos))
    return message


def _decode_request_in_steps(
    cls: type[Message], version: int, body: bytes, pos: int
) -> Generator[None, None, Message]:
    """Read a request. Raises ProtocolError only, TooManyItems above ITEMS_MAX, or MOVED_MAX."""
    items_max = MOVED_MAX if cls.name in _OF_OUR_OWN else ITEMS_MAX
    return read_message_in_steps(_reader(cls, version), cls.name, body, pos, items_max)


def _decode(cls: type[Message], version: int, body: bytes, pos: int) -> Message:
    message: Message = _all_at_once(read_message_in_steps(_reader(cls, version), cls.name, body, pos))
    return message


def _decode_api_versions(cls: type[Message], version: int, body: bytes, pos: int) -> Message:
    """Read a response, as v0 if its error is UNSUPPORTED_VERSION (ApiVersionsResponse.parse)."""
    return _decode(cls, 0 if body[pos : pos + 2] == _UNSUPPORTED_VERSION else version, body, pos)


@cache
def _reader(cls: Any, version: int) -> StepReader:
    return struct_reader(cls._struct, version, flexible=cls.flexible_version_q(version), cls=cls)


def _all_at_once(steps: Generator[None, None, Any]) -> Any:
    try:
        while True:
            next(steps)
    except StopIteration as done:
        return done.value


def _check(cls: Any, message: Any) -> None:
    if not isinstance(message, cls):
        raise TypeError(f"{type(message).__name__} is not a {cls.name}")


def _encode(cls: type[Message], version: int, message: Any) -> bytes:
    _check(cls, message)
    return bytes(ApiMessage.encode(message, version=version))
