# SPDX-License-Identifier: Apache-2.0
"""Responses that are written in steps are, byte for byte, those that are written at once."""

from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.api.slices import cast_as_list
from protocol.apis import ApiKey
from protocol.errors import MessageTooLarge
from protocol.kafka_python_messages import ListGroupsResponse, encode_response_in_steps
from protocol.message_codecs import find_message_codec
from protocol.stepwise_message_writer import ITEMS_PER_STEP, PIECE_BYTES
from tests.protocol.schemas import COLD_APIS, HOT_APIS, Case, cases, sample, to_kafka_python

RESPONSES = [case for case in cases(COLD_APIS + HOT_APIS) if case.kind == "response"]


def written(steps: Generator[None, None, list[bytes]]) -> tuple[bytes, int]:
    """What was written, and in how many steps."""
    count = 1
    try:
        while True:
            next(steps)
            count += 1
    except StopIteration as done:
        return b"".join(done.value), count


def lengthened(schema: Any, drawn: dict[str, Any], version: int, count: int) -> dict[str, Any]:
    """The same with every array of structs, at every depth, `count` items long."""
    longer = dict(drawn)
    for field in schema.fields.values():
        if field.is_struct_array() and longer.get(field.name):
            item = lengthened(field.array_of, longer[field.name][0], version, min(count, 3))
            longer[field.name] = [item] * count
    return longer


def in_place_of_lists(message: Any, moments: bool) -> Any:
    """The message with iterators for its arrays of structs, with or without moments to give way."""
    for field in message._struct.untagged_fields(message.version):
        items = getattr(message, field.name)
        if field.is_struct_array() and items:
            setattr(message, field.name, _iterate(items, moments))
    return message


def _iterate(items: list[Any], moments: bool) -> Iterator[Any]:
    for item in items:
        if moments:
            yield None
        yield in_place_of_lists(item, moments)


@pytest.mark.parametrize("case", RESPONSES, ids=str)
def test_in_steps_as_at_once(case: Case) -> None:
    for count in (1, 3 * ITEMS_PER_STEP):
        drawn = lengthened(case.schema, sample(case.schema, case.version), case.version, count)

        def build(drawn: dict[str, Any] = drawn) -> Any:
            return to_kafka_python(case.cls, case.schema, drawn, case.version)

        wanted = bytes(build().encode(version=case.version))
        for message in (
            build(),
            in_place_of_lists(build(), moments=False),
            in_place_of_lists(build(), moments=True),
        ):
            body, _ = written(encode_response_in_steps(case.api, case.version, message, Counter()))
            assert body == wanted


def listed(count: int) -> Any:
    kind = ListGroupsResponse.ListedGroup
    return [
        kind(version=4, group_id=f"group-{number}", protocol_type="consumer", group_state="Empty")
        for number in range(count)
    ]


@given(st.integers(0, 400))
def test_a_step_writes_a_bounded_number_of_items(count: int) -> None:
    message = ListGroupsResponse(version=4, groups=cast_as_list(iter(listed(count))))
    body, steps = written(encode_response_in_steps(ApiKey.LIST_GROUPS, 4, message, Counter()))
    whole = ListGroupsResponse(version=4, groups=listed(count))
    assert body == find_message_codec(ApiKey.LIST_GROUPS, 4).encode_response(whole)
    assert steps == 1 + count // ITEMS_PER_STEP


def test_a_message_of_another_api_is_not_written() -> None:
    with pytest.raises(TypeError, match="ListGroupsResponse is not a DescribeGroupsResponse"):
        written(encode_response_in_steps(ApiKey.DESCRIBE_GROUPS, 4, ListGroupsResponse(), Counter()))


def test_errors_are_counted_at_every_depth() -> None:
    for case in RESPONSES:
        if case.api is ApiKey.LIST_OFFSETS and case.version == 6:
            drawn = sample(case.schema, case.version)
            (topic,) = drawn["topics"]
            topic["partitions"] = [
                dict(topic["partitions"][0], error_code=code) for code in (3, 0, 3, 6)
            ] * 50
            message = to_kafka_python(case.cls, case.schema, drawn, case.version)
            errors: Counter[int] = Counter()
            written(encode_response_in_steps(case.api, case.version, message, errors))
            assert errors == {3: 100, 6: 50}
            topic["partitions"] = topic["partitions"][:4]
            message = to_kafka_python(case.cls, case.schema, drawn, case.version)
            written(encode_response_in_steps(case.api, case.version, message, errors))
            assert errors == {3: 102, 6: 51}
            return
    raise AssertionError("no such case")


def test_a_message_that_becomes_too_long_is_given_up_early() -> None:
    made = 0

    def groups() -> Iterator[Any]:
        nonlocal made
        for group in listed(100_000):
            made += 1
            yield group

    steps = encode_response_in_steps(
        ApiKey.LIST_GROUPS,
        4,
        ListGroupsResponse(version=4, groups=cast_as_list(groups())),
        Counter(),
        bytes_max=PIECE_BYTES,
    )
    with pytest.raises(MessageTooLarge):
        written(steps)
    assert made < 20_000
