# SPDX-License-Identifier: Apache-2.0
"""The random part of a new member's id."""

import random
import uuid

from coordinator.host_resources import real_machine
from coordinator.runtime.member_ids import DRAWN_AT_ONCE, MemberIdSuffixes


def test_each_is_a_random_uuid_of_its_own() -> None:
    suffixes = MemberIdSuffixes(random.Random(0).randbytes)
    drawn = [suffixes.next() for _ in range(3 * DRAWN_AT_ONCE + 1)]
    assert len(set(drawn)) == len(drawn)
    for text in drawn:
        parsed = uuid.UUID(text)
        assert (str(parsed), parsed.version, parsed.variant) == (text, 4, uuid.RFC_4122)
    assert {text[19] for text in drawn} == set("89ab")


def test_two_nodes_draw_different_ones() -> None:
    first, second = (MemberIdSuffixes(real_machine().random_bytes) for _ in range(2))
    assert first.next() != second.next()
