# SPDX-License-Identifier: Apache-2.0
"""One version of an api in the form that connections use; every request reads its attributes several times."""

from collections import Counter
from collections.abc import Callable, Generator
from typing import Any, Final, TypeAlias

from coordinator.api.context import RequestContext
from coordinator.node import Node
from protocol.apis import ApiKey
from protocol.compiled_struct import FieldsValue
from protocol.errors import ErrorCode

Handle: TypeAlias = Callable[[Node, Any, RequestContext], Any]
HandleInSteps: TypeAlias = Callable[[Node, Any, RequestContext], Generator[None, None, Any]]
DecodeInSteps: TypeAlias = Callable[[bytes, int], Generator[None, None, Any]]
EncodeInSteps: TypeAlias = Callable[[Any, "Counter[int]"], Generator[None, None, list[bytes]]]
"""(response, counter of its errors by code, which it fills) -> the pieces of the response's body"""


class SingleApiVersion(FieldsValue):
    """One version of an api that this node handles; each instance equals only itself."""

    __match_args__: Final = (
        "key",
        "name",
        "flexible",
        "flexible_response",
        "decode",
        "handle",
        "encode",
        "error_response",
        "adapt",
        "has_error",
        "in_pieces",
        "error_parts",
        "counts_part_errors",
        "repeats",
        "short_answers",
        "answer_bytes_max",
        "small_bytes",
        "decode_in_steps",
        "encode_in_steps",
        "handle_in_steps",
        "changes",
        "may_change",
        "waits_for_members",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        *,
        key: ApiKey,
        name: str,
        flexible: bool,
        flexible_response: bool,
        decode: Callable[[bytes, int], Any],
        handle: Handle,
        encode: Callable[[Any], bytes],
        error_response: Callable[[Any, ErrorCode, int], Any],
        adapt: Callable[[Any, int], Any] | None,
        in_pieces: Callable[[Any, int], Any] | None,
        has_error: bool,
        error_parts: tuple[str, ...],
        counts_part_errors: bool,
        repeats: bool,
        short_answers: bool,
        answer_bytes_max: Callable[[Node, Any, int], int] | None,
        small_bytes: int,
        decode_in_steps: DecodeInSteps,
        encode_in_steps: EncodeInSteps,
        handle_in_steps: HandleInSteps | None,
        changes: Callable[[Any], bool],
        may_change: bool,
        waits_for_members: bool,
    ) -> None:
        self.key: Final = key
        self.name: Final = name
        self.flexible: Final = flexible
        """True if the header of a request has tagged fields."""
        self.flexible_response: Final = flexible_response
        """True if the header of a response has tagged fields."""
        self.decode: Final = decode
        self.handle: Final = handle
        self.encode: Final = encode
        self.error_response: Final = error_response
        self.adapt: Final = adapt
        """(response, version) -> the response in the form of the version."""
        self.in_pieces: Final = in_pieces
        """(response, version) -> the form to encode in steps, if the response is too long for one step; else None."""
        self.has_error: Final = has_error
        """True if the response has a top-level error_code that is counted."""
        self.error_parts: Final = error_parts
        self.counts_part_errors: Final = counts_part_errors
        self.repeats: Final = repeats
        self.short_answers: Final = short_answers
        self.answer_bytes_max: Final = answer_bytes_max
        self.small_bytes: Final = small_bytes
        """The longest request that is handled at once; a longer one is handled in slices."""
        self.decode_in_steps: Final = decode_in_steps
        self.encode_in_steps: Final = encode_in_steps
        self.handle_in_steps: Final = handle_in_steps
        self.changes: Final = changes
        """Returns whether a decoded request changes something."""
        self.may_change: Final = may_change
        """True if some requests of the api change something."""
        self.waits_for_members: Final = waits_for_members

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)
