# SPDX-License-Identifier: Apache-2.0
"""The suite itself: no script breaks off, every difference is documented, and only chance is taken out."""

import re
from collections.abc import Iterable
from uuid import UUID

import pytest

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import all_scenarios
from tests.kafka.differential.goldens import KAFKA, load
from tests.kafka.differential.play import BROKEN
from tests.kafka.differential.render import Names, inline, lines, reading, response_fields
from tests.support.processes import REPOSITORY

DIFFERENCES = REPOSITORY / "docs" / "differences.md"
ONE_UUID, OTHER_UUID = "0f0e0d0c-0b0a-0908-0706-050403020100", "1f0e0d0c-0b0a-0908-0706-050403020100"


def names() -> Names:
    return Names("s00000000.", 9092, {b"blob": "<blob>"})


def golden_lines() -> Iterable[str]:
    for transcript in load(KAFKA).values():
        yield from transcript


def test_no_script_broke_off() -> None:
    assert [line for line in golden_lines() if line.startswith(BROKEN)] == []


def test_the_documented_differences_are_those_that_scenarios_show() -> None:
    documented = re.findall(r"^### (\S+)$", DIFFERENCES.read_text(), re.MULTILINE)
    shown = {scenario.differs for scenario in all_scenarios() if scenario.differs}

    assert len(set(documented)) == len(documented)
    assert set(documented) == shown


def test_uuids_are_numbered_as_they_appear() -> None:
    known = names()

    written = [known.text(f"a-{OTHER_UUID}"), known.text(f"b-{ONE_UUID} {OTHER_UUID}")]

    assert written == ["a-{1}", "b-{2} {1}"]


def test_topic_ids_have_the_name_of_their_topic_or_a_number() -> None:
    known = names()
    known.know_topic(UUID(ONE_UUID), "apples")
    ids = [UUID(ONE_UUID), UUID(int=0), None, UUID(OTHER_UUID), UUID(OTHER_UUID).bytes]

    assert [known.topic_id(value) for value in ids] == ["id of apples", "none", "none", "id 2", "id 2"]


def test_fields_keep_what_is_not_chance() -> None:
    fields = {
        "group_id": "s00000000.g",
        "port": 9092,
        "other": 9092,
        "error_code": 25,
        "flag": True,
        "data": b"\0a",
        "blob": b"blob",
        "nothing": None,
        "text": 'a "b"\n',
    }

    assert inline(fields, names()) == (
        "group_id=\"g\" port=<port> other=9092 error_code=UNKNOWN_MEMBER_ID flag=true data=b'\\x00a' "
        'blob=<blob> nothing=null text="a \\"b\\"\\n"'
    )


def test_long_texts_are_told_apart() -> None:
    written = {inline({"metadata": text}, names()) for text in ("x" * 300, "x" * 301, "x" * 299 + "y")}

    assert len(written) == 3


def test_long_lines_are_broken_by_item() -> None:
    fields = {"a": 1, "items": [{"name": "x" * 60}, {"name": "y" * 60}]}

    assert list(lines("A >", fields, names())) == [
        "A > a=1",
        "    items:",
        f'    - name="{"x" * 60}"',
        f'    - name="{"y" * 60}"',
    ]


def _listing(*group_ids: str) -> object:
    from protocol.kafka_python_messages import ListGroupsResponse

    kind = ListGroupsResponse.ListedGroup
    groups = [kind(group_id=name, protocol_type="", group_state="", group_type="") for name in group_ids]
    return ListGroupsResponse(error_code=0, groups=groups)


def test_unordered_arrays_are_sorted_and_other_scenarios_groups_left_out() -> None:
    response = _listing("s00000000.b", "s11111111.x", "s00000000.a")

    fields = response_fields(reading(ApiKey.LIST_GROUPS, 2), response, names())

    assert [group["group_id"] for group in fields["groups"]] == ["s00000000.a", "s00000000.b"]


def test_order_can_be_kept() -> None:
    response = _listing("s00000000.b", "s00000000.a")

    fields = response_fields(reading(ApiKey.LIST_GROUPS, 2, as_it_comes=True), response, names())

    assert [group["group_id"] for group in fields["groups"]] == ["s00000000.b", "s00000000.a"]


def test_new_uuids_that_only_chance_orders_are_refused() -> None:
    response = _listing(f"s00000000.{ONE_UUID}", f"s00000000.{OTHER_UUID}")

    with pytest.raises(AssertionError, match="cannot be told apart"):
        response_fields(reading(ApiKey.LIST_GROUPS, 2), response, names())
