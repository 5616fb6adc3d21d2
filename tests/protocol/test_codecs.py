# SPDX-License-Identifier: Apache-2.0
"""The codecs of all served messages and versions, hot and not: what is held for every one of them."""

import inspect
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from kafka.protocol.api_message import ApiMessage

from protocol.apis import ApiKey
from protocol.codegen.decoder import ITEMS_PER_STEP
from protocol.compiled_struct import copy_with_fields
from protocol.errors import ErrorCode, InvalidLength, ProtocolError, UnexpectedNull
from protocol.message_codecs import find_message_codec, schema_for
from protocol.wire import MAX_STRING_BYTES, pack_uvarint
from tests.protocol.schemas import (
    COLD_APIS,
    HOT_APIS,
    NO_TAGS,
    Case,
    ReferenceEncoder,
    cases,
    message_name,
    messages,
    present,
    sample,
    to_hot,
    to_kafka_python,
    values,
    variable_fields,
)
from tests.support.apis import FIRST_FLEXIBLE, SUPPORTED

Check = Callable[..., None]


def of_all_versions(of: list[list[Case]]) -> Callable[[Check], Check]:
    """Make one test a message of a check of one case: it checks all versions, and a failure names its own."""

    def decorate(check: Check) -> Check:
        @wraps(check)
        def test(versions: list[Case], **more: Any) -> None:
            for case in versions:
                try:
                    check(case, **more)
                except BaseException as failure:
                    failure.add_note(f"in {case}")
                    raise

        signature = inspect.signature(check)
        parameters = [
            parameter.replace(name="versions") if name == "case" else parameter
            for name, parameter in signature.parameters.items()
        ]
        test.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        marked: Check = pytest.mark.parametrize("versions", of, ids=message_name)(test)
        return marked

    return decorate


every_message = of_all_versions(messages(HOT_APIS + COLD_APIS))
every_flexible_message = of_all_versions(
    [
        flexible
        for versions in messages(HOT_APIS + COLD_APIS)
        if (flexible := [v for v in versions if v.flexible])
    ]
)
every_hot_message = of_all_versions(messages(HOT_APIS))
EXAMPLES = (settings.default or settings()).max_examples
slow_to_draw = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def ours(case: Case, drawn: dict[str, Any]) -> Any:
    """The message as the object that our codec takes."""
    if case.api in HOT_APIS:
        return to_hot(case.cls.name, case.schema, drawn, case.version)
    return to_kafka_python(case.cls, case.schema, drawn, case.version)


def sample_bytes(case: Case, **changes: Any) -> bytes:
    """The smallest message, with `changes` (see ReferenceEncoder)."""
    encoder = ReferenceEncoder(case.version, flexible=case.flexible, **changes)
    return encoder.encode(case.schema, sample(case.schema, case.version))


def assert_agreement(case: Case, drawn: dict[str, Any]) -> None:
    theirs = to_kafka_python(case.cls, case.schema, drawn, case.version)
    message = ours(case, drawn)

    encoded = case.encode(message)

    assert encoded == bytes(theirs.encode(version=case.version))
    assert case.decode(encoded, 0) == message
    # not case.cls.decode: ApiVersionsResponse overrides it to read every error as version 0
    decode: Any = ApiMessage.decode
    assert decode.__func__(case.cls, encoded, version=case.version) == theirs


@pytest.mark.parametrize("case", cases(HOT_APIS), ids=str)
@settings(slow_to_draw, max_examples=max(5, EXAMPLES // 3))
@given(data=st.data())
def test_hot_codecs_agree_with_kafka_python(case: Case, data: st.DataObject) -> None:
    assert_agreement(case, data.draw(values(case.schema, case.version)))


@pytest.mark.parametrize("versions", messages(COLD_APIS), ids=message_name)
@slow_to_draw
@given(data=st.data())
def test_other_codecs_agree_with_kafka_python(versions: list[Case], data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(versions))
    drawn = data.draw(values(case.schema, case.version))
    # an answer to ApiVersions that says so is always read as version 0: test_messages.py
    assume(case.api != ApiKey.API_VERSIONS or drawn.get("error_code") != ErrorCode.UNSUPPORTED_VERSION)
    assert_agreement(case, drawn)


@every_message
def test_the_body_is_read_from_its_position_and_bytes_after_it_are_ignored(case: Case) -> None:
    encoded = sample_bytes(case)

    assert case.decode(b"head" + encoded + b"tail", 4) == case.decode(encoded, 0)


@every_message
def test_fields_of_other_versions_have_their_defaults(case: Case) -> None:
    decoded = case.decode(sample_bytes(case), 0)
    blank = case.cls()

    for field in case.schema.fields.values():
        if not field.for_version_q(case.version) and field.type_str != "uuid":
            assert getattr(decoded, field.name) == getattr(blank, field.name), field.name


@every_message
def test_truncation_at_every_byte_is_refused(case: Case) -> None:
    encoded = sample_bytes(case)

    for end in range(len(encoded)):
        with pytest.raises(ProtocolError):
            case.decode(encoded[:end], 0)
        # nor is what lies before the body taken for it
        with pytest.raises(ProtocolError):
            case.decode(b"\1" * 50 + encoded[:end], 50)


@every_flexible_message
def test_unknown_tagged_fields_are_skipped_wherever_they_can_be(case: Case) -> None:
    # two of them: tag 100 of two bytes, tag 70,000 of 200 bytes
    tags = b"\2" + pack_uvarint(100) + b"\2ab" + pack_uvarint(70_000) + pack_uvarint(200) + bytes(200)

    assert case.decode(sample_bytes(case, tags=tags), 0) == case.decode(sample_bytes(case), 0)


@every_flexible_message
def test_tagged_fields_beyond_the_end_are_refused(case: Case) -> None:
    encoded = sample_bytes(case)

    for tags in (pack_uvarint(1 << 30), b"\1" + pack_uvarint(100) + pack_uvarint(1 << 30), b"\xff" * 20):
        with pytest.raises(ProtocolError):
            case.decode(encoded[:-1] + tags, 0)


@every_message
def test_null_is_taken_only_where_the_schema_allows_it(case: Case) -> None:
    for field in variable_fields(case.schema, case.version):
        is_string = field.type_str == "string" and not field.is_array()
        null = b"\0" if case.flexible else b"\xff" * (2 if is_string else 4)
        encoded = sample_bytes(case, instead={id(field): null})
        if field.nullable_for_version_q(case.version):
            case.decode(encoded, 0)
        else:
            with pytest.raises(UnexpectedNull, match=field.name):
                case.decode(encoded, 0)


@every_message
def test_lengths_that_cannot_be_are_refused(case: Case) -> None:
    for field in variable_fields(case.schema, case.version):
        is_string = field.type_str == "string" and not field.is_array()
        if case.flexible:
            # more than 31 bits, an endless varint, and the largest that is well formed
            lengths = [b"\xff\xff\xff\xff\x0f", b"\xff" * 4096, b"\xff\xff\xff\xff\x07"]
            refused: tuple[type[ProtocolError], ...] = (InvalidLength, ProtocolError, ProtocolError)
        else:
            form = ">h" if is_string else ">i"
            top = (1 << (15 if is_string else 31)) - 1
            lengths = [struct.pack(form, length) for length in (-2, -top - 1, top)]
            refused = (InvalidLength, InvalidLength, ProtocolError)
        for length, error in zip(lengths, refused, strict=True):
            with pytest.raises(error):
                case.decode(sample_bytes(case, instead={id(field): length}), 0)


@every_flexible_message
def test_compact_strings_end_where_classic_ones_do(case: Case) -> None:
    for field in variable_fields(case.schema, case.version):
        if field.type_str != "string" or field.is_array():
            continue
        longest = pack_uvarint(MAX_STRING_BYTES + 1) + b"x" * MAX_STRING_BYTES
        case.decode(sample_bytes(case, instead={id(field): longest}), 0)
        too_long = pack_uvarint(MAX_STRING_BYTES + 2) + b"x" * (MAX_STRING_BYTES + 1)
        with pytest.raises(InvalidLength, match=field.name):
            case.decode(sample_bytes(case, instead={id(field): too_long}), 0)


@pytest.mark.parametrize("versions", messages(HOT_APIS + COLD_APIS), ids=message_name)
@given(data=st.data())
def test_garbage_raises_protocol_errors_only(versions: list[Case], data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(versions))
    garbage = data.draw(st.binary(max_size=200))
    with suppress(ProtocolError):
        case.decode(garbage, 0)

    damaged = bytearray(sample_bytes(case))
    for _ in range(data.draw(st.integers(1, 4))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ProtocolError):
        case.decode(bytes(damaged), 0)


@every_message
def test_text_that_is_not_utf_8_reads_with_replacement_characters(case: Case) -> None:
    untouched = sample_bytes(case)
    for field in variable_fields(case.schema, case.version):
        if field.type_str != "string" or field.is_array():
            continue
        for raw, text in ((b"a\xff", "a\ufffd"), (b"\xc3(" + b"x" * 200, "\ufffd(" + "x" * 200)):
            size = pack_uvarint(len(raw) + 1) if case.flexible else struct.pack(">h", len(raw))
            valid = text.encode()
            good_size = pack_uvarint(len(valid) + 1) if case.flexible else struct.pack(">h", len(valid))
            bad = sample_bytes(case, instead={id(field): size + raw})
            good = sample_bytes(case, instead={id(field): good_size + valid})
            assert case.decode(bad, 0) == case.decode(good, 0) != case.decode(untouched, 0)


def with_lengths(drawn: dict[str, Any], length: int) -> dict[str, Any]:
    """The values with every string and bytes of this many bytes."""
    resized: dict[str, Any] = {}
    for name, value in drawn.items():
        if isinstance(value, str):
            resized[name] = "x" * length
        elif isinstance(value, bytes):
            resized[name] = b"y" * length
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            resized[name] = [with_lengths(item, length) for item in value]
        else:
            resized[name] = value
    return resized


@every_hot_message
@pytest.mark.parametrize("length", [0, 1, 126, 127, 128, 16_382, 16_383, MAX_STRING_BYTES])
def test_lengths_where_a_varint_grows_are_read_and_written(case: Case, length: int) -> None:
    drawn = with_lengths(sample(case.schema, case.version), length)
    message = ours(case, drawn)

    encoded = ReferenceEncoder(case.version, flexible=case.flexible).encode(case.schema, drawn)

    assert case.decode(encoded, 0) == message
    assert case.encode(message) == encoded


def with_long_arrays(schema: Any, version: int, count: int, special: int) -> dict[str, Any]:
    """The sample, its innermost arrays of `count` items whose strings are empty, but for item `special`."""
    drawn = sample(schema, version)
    for field in present(schema, version):
        if not field.is_struct_array():
            continue
        if any(inner.is_array() for inner in present(field.array_of, version)):
            drawn[field.name] = [with_long_arrays(field.array_of, version, count, special) for _ in range(2)]
            continue
        items = [sample(field.array_of, version) for _ in range(count)]
        for index, item in enumerate(items):
            for name, value in item.items():
                if isinstance(value, str) and index != special:
                    item[name] = ""
                elif isinstance(value, int):
                    item[name] = index
        drawn[field.name] = items
    return drawn


@every_hot_message
@pytest.mark.parametrize("tags", [NO_TAGS, b"\1\5\2xy"], ids=["plain", "tagged"])
def test_long_arrays_read_and_write_like_short_ones(case: Case, tags: bytes) -> None:
    # both sides of the counts from which the generated code treats all items as one, 10, and has two bytes of count
    for count, special in [
        (3, 0),
        (9, -1),
        (9, 8),
        (10, -1),
        (10, 0),
        (10, 9),
        (11, 2),
        (126, -1),
        (127, -1),
        (128, 70),
    ]:
        drawn = with_long_arrays(case.schema, case.version, count, special)
        message = ours(case, drawn)
        encoder = ReferenceEncoder(case.version, flexible=case.flexible, tags=tags)

        encoded = encoder.encode(case.schema, drawn)

        assert case.decode(encoded, 0) == message
        if tags == NO_TAGS:
            assert case.encode(message) == encoded
            assert case.encode(case.decode(encoded, 0)) == encoded  # which may have come as rows


@pytest.mark.parametrize(
    "case",
    [case for case in cases(HOT_APIS) if case.kind == "request" and case.codec.decode_request_in_steps],
    ids=str,
)
@pytest.mark.parametrize("deepest", [False, True], ids=["outer array", "deepest array"])
def test_a_long_request_is_read_in_steps_of_bounded_length(case: Case, deepest: bool) -> None:
    drawn = sample(case.schema, case.version)
    schema, values = case.schema, drawn
    while True:
        (array,) = [field for field in present(schema, case.version) if field.is_struct_array()]
        schema = array.array_of
        has_inner = any(field.is_struct_array() for field in present(schema, case.version))
        if not (deepest and has_inner):
            break
        values = values[array.name][0]
    values[array.name] = values[array.name][:1] * 4_000
    encoder = ReferenceEncoder(case.version, flexible=case.flexible)
    steps = case.codec.decode_request_in_steps
    assert steps is not None
    assert sum(1 for _ in steps(encoder.encode(case.schema, drawn), 0)) >= 4_000 // ITEMS_PER_STEP


@every_hot_message
def test_a_null_in_a_version_that_has_none_is_not_written(case: Case) -> None:
    for field in case.schema.untagged_fields(case.version):
        if field.type_str == "bool":
            continue  # struct takes any object for its truth
        message, null = ours(case, sample(case.schema, case.version)), {field.name: None}
        if field.nullable_for_version_q(case.version):
            assert getattr(case.decode(case.encode(copy_with_fields(message, **null)), 0), field.name) is None
        else:  # where it is compiled, there is not even such a message
            with pytest.raises((UnexpectedNull, TypeError, AttributeError, struct.error)):
                case.encode(copy_with_fields(message, **null))


@every_hot_message
def test_strings_too_long_for_kafka_are_not_written(case: Case) -> None:
    for field in case.schema.untagged_fields(case.version):
        if field.type_str == "string" and not field.is_array():
            too_long = {field.name: "x" * (MAX_STRING_BYTES + 1)}
            message = copy_with_fields(ours(case, sample(case.schema, case.version)), **too_long)
            with pytest.raises(InvalidLength):
                case.encode(message)


@pytest.mark.parametrize("api", SUPPORTED, ids=lambda api: api.name)
def test_the_versions_of_the_schema_have_a_codec_and_no_others(api: ApiKey) -> None:
    versions = schema_for(api).versions

    for version in range(versions.min, versions.max + 1):
        codec = find_message_codec(api, version)
        assert codec.flexible == (version >= FIRST_FLEXIBLE[api])
        assert find_message_codec(api, version) is codec
    for version in (versions.min - 1, versions.max + 1):
        with pytest.raises(KeyError):
            find_message_codec(api, version)


def test_an_api_without_a_schema_has_no_codec() -> None:
    for api_key in (-1, ApiKey.SHARE_FETCH, 9999):
        with pytest.raises(KeyError):
            find_message_codec(api_key, 0)
