# SPDX-License-Identifier: Apache-2.0
"""Requests whose work has no small bound: answered in slices, between which the event loop serves others.

A handler whose response is as long as a list of the request, or as the state of the node, passes it to
`respond_in_slices` with generators in place of its long lists: each item is made, encoded and dropped. If the response
needs work before, that work is a generator, too (`run_work_and_respond`). A connection whose peer is gone drops its
work. A slice that reads a group calls `RequestContext.add_ticket`, so the response is sent once all that it shows is
durable.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeVar, cast

from coordinator.api.context import SILENT, ParkedSentinel, RequestContext, Work
from coordinator.api.part_error_counting import iterate_part_errors
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from coordinator.api.single_api_version import SingleApiVersion
    from coordinator.node import Node
    from coordinator.telemetry.stats import Stats

T = TypeVar("T")

ITEMS_PER_SLICE: Final = 50
"""The number of small items in one slice: some 100 microseconds."""


PIECES_FROM_BYTES: Final = 1024 * 1024
"""The longest response that is made in one piece: to join more bytes would take longer than a slice."""
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
"""The longest response that is made in slices."""


def handle_in_steps(
    node: "Node", ctx: RequestContext, api: "SingleApiVersion", frame: bytes, pos: int
) -> Work:
    """Decode and handle a long request in steps. Raises ProtocolError for one that is not Kafka's protocol."""
    request = yield from api.decode_in_steps(frame, pos)
    ctx.request = request
    if ctx.is_unheard and not api.changes(request):
        return SILENT
    node.stats.count_request(ctx.api_key)
    if api.handle_in_steps is not None:
        response = yield from api.handle_in_steps(node, request, ctx)
        yield
    else:
        response = api.handle(node, request, ctx)
    return response


def respond_in_slices(node: "Node", ctx: RequestContext, response: object) -> ParkedSentinel:
    """Answer with a response that may have iterators in place of its lists of structs."""
    return ctx.answer_by_sliced_work(encode_and_count_errors_in_steps(node, ctx, response))


def run_work_and_respond(
    node: "Node", ctx: RequestContext, work: Generator[None, None, object]
) -> ParkedSentinel:
    """Do the work, whose yields let the event loop serve others, and answer with the response that it returns."""
    return ctx.answer_by_sliced_work(_answer(node, ctx, work))


def make_and_count_error_in_steps(stats: "Stats", ctx: RequestContext, error: ErrorCode) -> Work:
    """Return the response with this error in place of every result of a long request; count its parts in steps."""
    response = ctx.api.error_response(ctx.request, error, ctx.api_version)
    yield
    if ctx.api.counts_part_errors:
        for code in iterate_with_none_at_pauses(iterate_part_errors(ctx.api.error_parts, response)):
            if code is None:
                yield
            else:
                stats.count_error(ctx.api.key, code)
    return response


def _answer(node: "Node", ctx: RequestContext, work: Generator[None, None, object]) -> Work:
    response = yield from work
    return (yield from encode_and_count_errors_in_steps(node, ctx, response))


def encode_and_count_errors_in_steps(node: "Node", ctx: RequestContext, response: object) -> Work:
    """Encode a response's body in steps, count its errors, and return the pieces."""
    errors: Counter[int] = Counter()
    pieces = yield from ctx.api.encode_in_steps(response, errors)
    for code, count in errors.items():
        node.stats.errors[ctx.api_key, int(code)] += count
    return pieces


def cast_as_list(items: Iterable[T | None]) -> list[T]:
    """Cast an iterator to a list of structs, for `respond_in_slices`; None in it yields to the event loop."""
    return cast("list[T]", items)


def iterate_with_none_at_pauses(items: Iterable[T]) -> Iterator[T | None]:
    """Yield the items, and None after every ITEMS_PER_SLICE of them, at which the caller yields to the event loop."""
    for index, item in enumerate(items):
        yield item
        if index % ITEMS_PER_SLICE == ITEMS_PER_SLICE - 1:
            yield None
