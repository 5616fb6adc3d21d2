# SPDX-License-Identifier: Apache-2.0
"""deploy/config.example.toml and docs/settings.md say of every setting what the program does."""

import tomllib
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from coordinator.config import Settings, load, reference
from coordinator.config.example import SECTIONS, render

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "deploy" / "config.example.toml"
PAGE = ROOT / "docs" / "settings.md"
FIELDS = msgspec.structs.fields(Settings)


def test_the_example_is_what_the_settings_say() -> None:
    assert EXAMPLE.read_text() == render(), "run: groupkeeper settings > deploy/config.example.toml"


def test_the_page_is_what_the_settings_say() -> None:
    assert PAGE.read_text() == reference.render(), "run: groupkeeper settings --markdown > docs/settings.md"


def test_loading_the_example_changes_nothing() -> None:
    assert load(EXAMPLE) == Settings()


def test_the_example_holds_every_setting_once() -> None:
    assert list(tomllib.loads(EXAMPLE.read_text())) == [field.encode_name for field in FIELDS]


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.encode_name)
def test_every_setting_has_one_sentence(field: msgspec.structs.FieldInfo) -> None:
    (sentence,) = [extra for extra in get_args(field.type) if isinstance(extra, str)]
    assert sentence[0].isupper()
    assert sentence.endswith(".")


def test_every_section_starts_at_a_setting() -> None:
    assert SECTIONS.keys() <= {field.encode_name for field in FIELDS}


KAFKA_DEFAULTS = {  # of Apache Kafka 4.4
    "offsets.topic.num.partitions": 50,
    "offsets.topic.segment.bytes": 104_857_600,
    "offsets.topic.compression.codec": "none",
    "offsets.retention.minutes": 10_080,
    "offsets.retention.check.interval.ms": 600_000,
    "offset.metadata.max.bytes": 4_096,
    "offsets.load.buffer.size": 5_242_880,
    "group.min.session.timeout.ms": 6_000,
    "group.max.session.timeout.ms": 1_800_000,
    "group.initial.rebalance.delay.ms": 3_000,
    "group.max.size": 2_147_483_647,
    "segment.ms": 604_800_000,
    "connections.max.idle.ms": 600_000,
    "socket.request.max.bytes": 104_857_600,
    "message.max.bytes": 1_048_588,
    "auto.create.topics.enable": True,
    "num.partitions": 1,
    "max.connections": 2_147_483_647,
    "max.connections.per.ip": 2_147_483_647,
}


@pytest.mark.parametrize(("name", "default"), KAFKA_DEFAULTS.items())
def test_kafkas_settings_have_kafkas_defaults(name: str, default: object) -> None:
    assert {field.encode_name: field.default for field in FIELDS}[name] == default
