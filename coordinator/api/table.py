# SPDX-License-Identifier: Apache-2.0
"""Which module serves which api, and the codec of every version: the one table of all that is served."""

import importlib
from collections.abc import Callable, Generator, Mapping
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from coordinator.api.context import ErrorResponse, Handler
from coordinator.api.part_errors import COUNTED_BY_HANDLER, PARTS
from coordinator.api.slices import ANSWER_BYTES_MAX
from protocol import hot
from protocol.apis import SUPPORTED, ApiKey
from protocol.codecs import codec_for
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections import Counter

MODULES: Final[Mapping[ApiKey, str]] = {
    ApiKey.PRODUCE: "produce",
    ApiKey.FETCH: "fetch",
    ApiKey.LIST_OFFSETS: "list_offsets",
    ApiKey.METADATA: "metadata",
    ApiKey.OFFSET_COMMIT: "offset_commit",
    ApiKey.OFFSET_FETCH: "offset_fetch",
    ApiKey.FIND_COORDINATOR: "find_coordinator",
    ApiKey.JOIN_GROUP: "join_group",
    ApiKey.HEARTBEAT: "heartbeat",
    ApiKey.LEAVE_GROUP: "leave_group",
    ApiKey.SYNC_GROUP: "sync_group",
    ApiKey.DESCRIBE_GROUPS: "describe_groups",
    ApiKey.LIST_GROUPS: "list_groups",
    ApiKey.API_VERSIONS: "api_versions",
    ApiKey.CREATE_TOPICS: "create_topics",
    ApiKey.DELETE_TOPICS: "delete_topics",
    ApiKey.INIT_PRODUCER_ID: "init_producer_id",
    ApiKey.DESCRIBE_CONFIGS: "describe_configs",
    ApiKey.CREATE_PARTITIONS: "create_partitions",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "incremental_alter_configs",
    ApiKey.DELETE_GROUPS: "delete_groups",
    ApiKey.OFFSET_DELETE: "offset_delete",
    ApiKey.DESCRIBE_CLUSTER: "describe_cluster",
}

ERRORS_IN_PARTS: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.OFFSET_COMMIT,
        ApiKey.METADATA,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.DELETE_GROUPS,
        ApiKey.LIST_OFFSETS,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.DESCRIBE_CONFIGS,
    }
)
"""Apis whose responses have errors by group, topic or partition only."""

REPEATED: Final = frozenset({ApiKey.HEARTBEAT, ApiKey.OFFSET_FETCH})
"""Apis whose requests a client repeats byte for byte: each is decoded once."""


SMALL_BYTES: Final = 2048
SMALL_HOT_BYTES: Final = 16_384
"""What fits into them takes a few milliseconds at worst; of the hot apis more does, which are compiled."""

EncodeInSteps: TypeAlias = Callable[[Any, "Counter[int]"], Generator[None, None, list[bytes]]]
"""(response, the errors in it by code, to be counted) -> the pieces of its body"""
HandleInSteps: TypeAlias = Callable[[Any, Any, Any], Generator[None, None, Any]]
"""(node, request, ctx) -> what a handler returns"""


class Api(msgspec.Struct, frozen=True, eq=False):
    """One version of one api as a connection needs it."""

    key: ApiKey
    name: str
    decode: Callable[[bytes, int], Any]
    handle: Handler
    encode: Callable[[Any], bytes]
    flexible_header: bool
    error_response: ErrorResponse
    adapt: Callable[[Any, int], Any] | None  # (response, version) -> the response as the version has it
    has_error: bool  # whether the response has an error_code of its own, and not only its parts
    decode_in_steps: Callable[[bytes, int], Generator[None, None, Any]]
    encode_in_steps: EncodeInSteps
    small_bytes: int  # a request that is longer is handled in slices
    handle_in_steps: HandleInSteps | None = None  # where there is another way for long requests
    parts_have_errors: bool = False
    counts_part_errors: bool = False  # whether the handler itself counts the errors of parts
    repeats: bool = False  # whether clients repeat the same request


class Apis:
    """All that is served: by api key and version."""

    def __init__(self, answer_bytes_max: int = ANSWER_BYTES_MAX) -> None:
        """No answer that is made in slices is longer than `answer_bytes_max`."""
        self._apis: dict[tuple[int, int], Api] = {}
        self._api_versions_unsupported: Api | None = None
        for key, versions in SUPPORTED.items():
            module = importlib.import_module(f"coordinator.api.{MODULES[key]}")
            for version in range(versions.min, versions.max + 1):
                self._apis[int(key), version] = _api(key, version, module, answer_bytes_max)
        self._unsupported = _unsupported_api_versions()

    def get(self, api_key: int, version: int) -> Api:
        """The api that serves a request whose header was accepted.

        Only ApiVersions is accepted in versions that are not served: these are answered in version 0.
        """
        return self._apis.get((api_key, version), self._unsupported)


def _api(key: ApiKey, version: int, module: ModuleType, answer_bytes_max: int) -> Api:
    codec = codec_for(key, version)
    return Api(
        key=key,
        name=key.name.lower(),
        decode=codec.decode_request,
        handle=module.handle,
        encode=codec.encode_response,
        # KIP-511: a client reads the answer to ApiVersions before it knows what the server speaks.
        flexible_header=codec.flexible and key is not ApiKey.API_VERSIONS,
        error_response=module.error_response,
        adapt=getattr(module, "adapt", None),
        has_error=key not in ERRORS_IN_PARTS,
        decode_in_steps=codec.decode_request_in_steps or partial(_in_one_step, codec.decode_request),
        encode_in_steps=_encode_in_steps(key, version, answer_bytes_max),
        small_bytes=SMALL_HOT_BYTES if key in hot.CODECS else SMALL_BYTES,
        handle_in_steps=getattr(module, "handle_in_steps", None),
        parts_have_errors=key in PARTS,
        counts_part_errors=key in COUNTED_BY_HANDLER,
        repeats=key in REPEATED,
    )


def _in_one_step(decode: Callable[[bytes, int], Any], frame: bytes, pos: int) -> Generator[None, None, Any]:
    request = decode(frame, pos)
    yield
    return request


def _encode_in_steps(key: ApiKey, version: int, bytes_max: int) -> EncodeInSteps:
    from protocol.messages import encode_response_in_steps

    return partial(encode_response_in_steps, key, version, bytes_max=bytes_max)


def _unsupported_api_versions() -> Api:
    module = importlib.import_module("coordinator.api.api_versions")
    codec = codec_for(ApiKey.API_VERSIONS, 0)
    return Api(
        key=ApiKey.API_VERSIONS,
        name=ApiKey.API_VERSIONS.name.lower(),
        decode=lambda _frame, _pos: None,
        handle=lambda _node, request, ctx: module.error_response(
            request, ErrorCode.UNSUPPORTED_VERSION, ctx.api_version
        ),
        encode=codec.encode_response,
        flexible_header=False,
        error_response=module.error_response,
        adapt=None,
        has_error=True,
        decode_in_steps=partial(_in_one_step, lambda _frame, _pos: None),
        encode_in_steps=_encode_in_steps(ApiKey.API_VERSIONS, 0, ANSWER_BYTES_MAX),
        small_bytes=SMALL_BYTES,
    )
