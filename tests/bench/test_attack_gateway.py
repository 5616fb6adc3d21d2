# SPDX-License-Identifier: Apache-2.0
"""`python -m bench attack gateway`: what is sent, how it is judged, and a short attack."""

import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bench.attack.gateway import cli as attack
from bench.attack.gateway import mix
from bench.attack.gateway.attacker import KINDS
from bench.attack.gateway.cli import GATEWAY, MIB, NODE, Outcome, Resident
from bench.kafka import KafkaUnavailable, kafka_classpath
from protocol.headers import decode_request_header
from protocol.message_codecs import find_message_codec
from tests.support.documented import Documented
from tests.support.missing import skip_or_fail

MESSAGE_BYTES_MAX = 1 << 20


def whole(data: bytes) -> list[bytes]:
    """The frames in these bytes, without their lengths."""
    frames = []
    while data:
        end = 4 + int.from_bytes(data[:4], "big")
        assert len(data) >= end
        frames.append(data[4:end])
        data = data[end:]
    return frames


def decoded(frame: bytes) -> Any:
    """The request in a frame, of which every byte belongs to it."""
    codec = find_message_codec(*struct.unpack_from(">hh", frame))
    _, pos = decode_request_header(frame, codec.flexible)
    message = codec.decode_request(frame, pos)
    assert codec.encode_request(message) == frame[pos:]
    return message


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (mix.many_names, 1),
        (mix.unknown_commit, 1),
        (mix.small_request, 1),
        (mix.pipelined_lists, mix.PIPELINED),
    ],
)
def test_what_is_sent_is_well_formed_and_follows_from_the_seed(
    make: Callable[[Random], bytes], count: int
) -> None:
    for seed in range(20):
        data = make(Random(seed))
        assert data == make(Random(seed))
        frames = whole(data)
        assert len(frames) == count
        assert all(decoded(frame) for frame in frames)


def test_half_a_request_has_less_than_its_length_says() -> None:
    data = mix.half_request(Random(1))
    assert int.from_bytes(data[:4], "big") == mix.HALF_OF_BYTES
    assert len(data) == mix.HALF_OF_BYTES // 2


def test_the_large_group_has_an_offset_with_metadata_in_each_partition() -> None:
    (fetch,) = whole(mix.fetch_large())
    assert len(fetch) < 50
    (group,) = decoded(fetch).groups
    commits = [decoded(frame) for data in mix.large_commits() for frame in whole(data)]
    assert {commit.group_id for commit in commits} == {group.group_id}
    parts = [part for commit in commits for topic in commit.topics for part in topic.partitions]
    assert sorted(part.partition_index for part in parts) == list(range(mix.PARTITIONS))
    assert sum(len(part.committed_metadata) for part in parts) == 8_192_000
    assert all(len(data) < MESSAGE_BYTES_MAX for data in mix.large_commits())


def outcome(
    *, most_bytes: int = 300 * MIB, after_bytes: int = 60 * MIB, errors: int = 0, ended: tuple[str, ...] = ()
) -> Outcome:
    resident = {name: Resident(60 * MIB, most_bytes, after_bytes) for name in (GATEWAY, NODE)}
    return Outcome(resident, list(ended), {"room": 3}, {}, {}, Counter({"lost": errors} if errors else {}))


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (outcome(most_bytes=512 * MIB), "the gateway had 512.0 MiB, which is not below 512.0 MiB"),
        (outcome(after_bytes=73 * MIB), "a minute afterwards it had 122% of what it had at the start"),
        (outcome(errors=2), "the well-behaved client got 2 errors"),
        (outcome(ended=(GATEWAY,)), "the gateway's process has ended"),
    ],
)
def test_each_fault_is_named(found: Outcome, fault: str) -> None:
    assert attack.faults(found) == [fault]


def test_an_attack_without_a_fault() -> None:
    assert attack.faults(outcome(most_bytes=511 * MIB, after_bytes=72 * MIB)) == []


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_gateway_is_attacked_and_its_memory_is_shown(documented: Documented, tmp_path: Path) -> None:
    try:
        kafka_classpath()
    except KafkaUnavailable as error:
        skip_or_fail(str(error))
    page = tmp_path / "results.md"
    options = f"brief halves --seconds 3 --after 1 --write {page}"
    (command,) = documented.commands
    # What the gateway's memory is after so short a time may be a fault, or not.
    ran = documented.run(command, {"--write": options}, status=None)
    shown = ran.stdout
    assert ran.returncode == int("\nfailed: " in shown), ran.stderr
    rows = {line.split()[0] for line in shown.splitlines()}
    assert rows & KINDS.keys() <= {"brief", "halves"}
    assert rows >= {GATEWAY, NODE, "Heartbeat", "OffsetCommit"}
    assert "errors: none" in shown
    written = page.read_text()
    assert f"python -m bench attack gateway {options}`" in written
    assert shown in written
