# SPDX-License-Identifier: Apache-2.0
"""Which names a topic may have, and which may not stand side by side."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.catalogue.names import NAME_LENGTH_MAX, collision_key, invalid_reason

LEGAL = "abcXYZ019._-"


@given(
    st.text(alphabet=LEGAL, min_size=1, max_size=NAME_LENGTH_MAX).filter(lambda name: name not in (".", ".."))
)
def test_every_other_text_of_legal_characters_is_a_name(name: str) -> None:
    assert invalid_reason(name) is None


@given(st.text(alphabet=LEGAL, max_size=10), st.characters(exclude_characters=LEGAL), st.text(max_size=10))
def test_one_illegal_character_spoils_a_name(start: str, character: str, end: str) -> None:
    illegal = not (character.isascii() and (character.isalnum() or character in "._-"))
    assert (invalid_reason(start + character + end) is not None) or not illegal


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a" * 250, "has 250 characters, the max allowed length is 249"),
        ("a b", "'a b' contains one or more characters other than"),
        ("a\n", "other than ASCII alphanumerics"),
        ("ä", "other than ASCII alphanumerics"),
    ],
)
def test_a_bad_name_is_told_why(name: str, reason: str) -> None:
    assert reason in (invalid_reason(name) or "")


def test_the_longest_name_and_three_dots_are_fine() -> None:
    assert invalid_reason("a" * 249) is None
    assert invalid_reason("...") is None


def test_dots_and_underscores_are_the_same_to_a_collision() -> None:
    assert collision_key("a.b_c") == collision_key("a_b.c")
    assert collision_key("a-b") != collision_key("a_b")
