# SPDX-License-Identifier: Apache-2.0
"""The table of the versions of apis that a node handles, made of the declarations in the modules of this folder."""

import importlib
import pkgutil
import struct
from collections.abc import Callable, Generator, Iterable, Mapping
from functools import partial
from types import MappingProxyType, ModuleType
from typing import Any, Final, TypeAlias

import coordinator.api
from coordinator.api.declaration import Api
from coordinator.api.single_api_version import EncodeInSteps, SingleApiVersion
from coordinator.api.slices import ANSWER_BYTES_MAX
from protocol import hot
from protocol.apis import PRIVATE_FROM, ApiKey, ApiVersionRange
from protocol.codec import Codec
from protocol.compiled_struct import copy_with_fields
from protocol.headers import (
    has_flexible_response_header,
    pack_api_key_and_version,
    read_api_key_and_version,
    unsupported_version_error,
)
from protocol.wire import MAX_INT32

AnyApi: TypeAlias = Api[Any, Any]

SMALL_BYTES: Final = 2048
SMALL_HOT_BYTES: Final = 16_384
"""The longest requests handled at once, in a few milliseconds at worst; longer for the hot apis, which are compiled."""


class Capabilities:
    """The apis of one node; a request's first four bytes select the api and version, before it is decoded."""

    def __init__(self, apis: Iterable[AnyApi], answer_bytes_max: int = ANSWER_BYTES_MAX) -> None:
        """Limit responses that are made in slices to `answer_bytes_max` bytes."""
        self._apis = sorted(apis, key=lambda api: api.key)
        self.routes: dict[int, SingleApiVersion] = {
            pack_api_key_and_version(api.key, version): _handled(api, version, answer_bytes_max)
            for api in self._apis
            for version in range(api.versions.min, api.versions.max + 1)
        }
        """The api's version, by the first four bytes of a request (`protocol.headers.read_api_key_and_version`)."""
        self._refused = {
            api.key: _refused(api, answer_bytes_max) for api in self._apis if api.refuse_version is not None
        }

    @property
    def offered_versions(self) -> tuple[ApiVersionRange, ...]:
        """The apis and versions that ApiVersions lists, in the order of the keys."""
        return tuple(
            ApiVersionRange(
                int(api.key),
                api.versions.min if api.offered_from is None else api.offered_from,
                api.versions.max,
            )
            for api in self._apis
            if api.key < PRIVATE_FROM
        )

    def frame_bounds(self, message_bytes_max: int) -> Mapping[int, int]:
        """Return the longest frame by api key, if a batch may have `message_bytes_max` bytes."""
        return MappingProxyType(
            {int(api.key): api.frame.frame_limit_bytes(message_bytes_max) for api in self._apis}
        )

    def get_api_for_frame(self, frame: bytes) -> SingleApiVersion:
        """Return the api for a request. Raises UnsupportedVersion, and ProtocolError for bytes that are no request."""
        return self.routes.get(read_api_key_and_version(frame)) or self.get_version_refusal_api(frame)

    def get_version_refusal_api(self, frame: bytes) -> SingleApiVersion:
        """Return the api for a request that `routes` lacks: ApiVersions, which Kafka answers in every version.

        Raises UnsupportedVersion for any other, and ProtocolError for bytes that are no request.
        """
        api_key, version = struct.unpack_from(">hh", frame)
        if api_key not in self._refused:
            raise unsupported_version_error(frame)
        first_flexible, classic, flexible = self._refused[api_key]
        return flexible if version >= first_flexible else classic


def load_declared_apis(package: ModuleType = coordinator.api) -> list[AnyApi]:
    """Return every api that a module of the package declares. Imports all of them, and with them kafka-python.

    Modules of subpackages are left out: pass the package `private` for its apis.
    """
    found = []
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        api = getattr(importlib.import_module(module.name), "API", None)
        if isinstance(api, Api):
            found.append(api)
    return found


def _handled(api: AnyApi, version: int, answer_bytes_max: int) -> SingleApiVersion:
    codec: Codec[Any, Any] = api.schema.codecs[version]
    return SingleApiVersion(
        key=api.key,
        name=api.key.name.lower(),
        flexible=codec.flexible,
        flexible_response=has_flexible_response_header(api.key, codec.flexible),
        decode=codec.decode_request,
        handle=api.handle,
        encode=codec.encode_response,
        error_response=api.error_response,
        adapt=api.adapt,
        in_pieces=api.in_pieces,
        has_error=api.counts_top_error and hasattr(api.schema.response(), "error_code"),
        error_parts=api.error_parts,
        counts_part_errors=api.counts_part_errors,
        repeats=api.repeats,
        short_answers=api.short_answers,
        answer_bytes_max=api.answer_bytes_max,
        small_bytes=SMALL_HOT_BYTES if api.key in hot.SCHEMAS else SMALL_BYTES,
        decode_in_steps=codec.decode_request_in_steps or partial(_in_one_step, codec.decode_request),
        # The response to a group's leader is bounded by group.members.max.bytes instead.
        encode_in_steps=_encode_in_steps(api.key, version, MAX_INT32 if api.in_pieces else answer_bytes_max),
        handle_in_steps=api.handle_in_steps,
        changes=api.changes if callable(api.changes) else partial(_always, api.changes),
        may_change=api.changes is not False,
        waits_for_members=api.waits_for_members,
    )


def _always(answer: bool, _request: Any) -> bool:
    return answer


def _refused(api: AnyApi, answer_bytes_max: int) -> tuple[int, SingleApiVersion, SingleApiVersion]:
    """Return how unserved versions are answered: the first flexible version, and the apis below and from it on."""
    refuse = api.refuse_version
    assert refuse is not None
    answer = copy_with_fields(
        _handled(api, 0, answer_bytes_max),
        decode=_unread,
        decode_in_steps=partial(_in_one_step, _unread),
        handle=lambda node, _request, _ctx: refuse(node),
        handle_in_steps=None,
        flexible_response=False,
    )
    return (
        api.schema.first_flexible,
        copy_with_fields(answer, flexible=False),
        copy_with_fields(answer, flexible=True),
    )


def _unread(_frame: bytes, _pos: int) -> None:
    """Ignore the body of a request in an unknown version."""


def _in_one_step(decode: Callable[[bytes, int], Any], frame: bytes, pos: int) -> Generator[None, None, Any]:
    request = decode(frame, pos)
    yield
    return request


def _encode_in_steps(key: ApiKey, version: int, bytes_max: int) -> EncodeInSteps:
    from protocol.kafka_python_messages import encode_response_in_steps

    return partial(encode_response_in_steps, key, version, bytes_max=bytes_max)
