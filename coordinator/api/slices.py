# SPDX-License-Identifier: Apache-2.0
"""Requests whose work has no small bound: answered in slices, between which the event loop serves others.

A handler whose answer is as long as a list of the request, or as the state of the node, gives it to `in_slices` with
generators in place of its long lists: each item is made, encoded and forgotten. Where there is work before the answer,
it is a generator itself (`work_in_slices`). A connection whose peer is gone drops what it was working on. What a slice
reads of a group it notes with `RequestContext.wait_for`, so the answer leaves when all of that is durable.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeVar, cast

from coordinator.api.context import SILENT, Parked, RequestContext, Work
from coordinator.api.part_errors import part_errors
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from coordinator.api.handled import VersionedApi
    from coordinator.node import Node
    from coordinator.telemetry.stats import Stats

T = TypeVar("T")

ITEMS_PER_SLICE: Final = 50
"""How many small things are done before others get a chance: some 100 microseconds."""


PIECES_FROM_BYTES: Final = 1024 * 1024
"""An answer that is longer is made and written piece by piece: to join it would take longer than a slice."""
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
"""No answer is longer that is made in slices."""


def handle_in_steps(node: "Node", ctx: RequestContext, api: "VersionedApi", frame: bytes, pos: int) -> Work:
    """Decode and handle a long request in steps. Raises ProtocolError for one that is not Kafka's protocol."""
    request = yield from api.decode_in_steps(frame, pos)
    ctx.request = request
    if ctx.is_unheard and not api.changes(request):
        return SILENT
    node.stats.handled(ctx.api_key)
    if api.handle_in_steps is not None:
        response = yield from api.handle_in_steps(node, request, ctx)
        yield
    else:
        response = api.handle(node, request, ctx)
    return response


def in_slices(node: "Node", ctx: RequestContext, response: object) -> Parked:
    """Answer with a response that may have iterators (`streamed`) in place of its lists of structs."""
    return ctx.in_slices(encoded(node, ctx, response))


def work_in_slices(node: "Node", ctx: RequestContext, work: Generator[None, None, object]) -> Parked:
    """Do the work, giving way wherever it yields, and answer with the response that it returns."""
    return ctx.in_slices(_answer(node, ctx, work))


def error_in_steps(stats: "Stats", ctx: RequestContext, error: ErrorCode) -> Work:
    """The answer that says this error wherever the long request would have got one; its parts are counted in steps."""
    response = ctx.api.error_response(ctx.request, error, ctx.api_version)
    yield
    if ctx.api.counts_part_errors:
        for code in moments(part_errors(ctx.api.error_parts, response)):
            if code is None:
                yield
            else:
                stats.error(ctx.api.key, code)
    return response


def _answer(node: "Node", ctx: RequestContext, work: Generator[None, None, object]) -> Work:
    response = yield from work
    return (yield from encoded(node, ctx, response))


def encoded(node: "Node", ctx: RequestContext, response: object) -> Work:
    """The pieces of a response's body, made in steps, with its errors counted."""
    errors: Counter[int] = Counter()
    pieces = yield from ctx.api.encode_in_steps(response, errors)
    for code, count in errors.items():
        node.stats.errors[ctx.api_key, int(code)] += count
    return pieces


def streamed(items: Iterable[T | None]) -> list[T]:
    """An iterator in place of a list of structs, in a response for `in_slices`; None in it is a moment to give way."""
    return cast("list[T]", items)


def moments(items: Iterable[T]) -> Iterator[T | None]:
    """The items, and now and then None: a moment to give way, for generators that make an item of few of many."""
    for index, item in enumerate(items):
        yield item
        if index % ITEMS_PER_SLICE == ITEMS_PER_SLICE - 1:
            yield None
