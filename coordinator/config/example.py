# SPDX-License-Identifier: Apache-2.0
"""Renders deploy/config.example.toml from the settings themselves; `groupkeeper settings` prints it."""

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, get_args, get_origin

import msgspec

from coordinator.config.settings import Settings
from coordinator.config.values import Address, setting_kind

HEAD: Final = """\
# SPDX-License-Identifier: Apache-2.0
# Every setting of Groupkeeper with its default. `groupkeeper settings` prints this file.
#
# Usage: groupkeeper serve --config FILE. Later sources win: this file, then the environment
# (GROUPKEEPER_OFFSETS_RETENTION_MINUTES=10080), then flags (--set offsets.retention.minutes=10080).
# Settings that Kafka also has use its names and defaults. Write names in quotes, since they contain dots;
# tables work as well ([offsets] with retention.minutes = 10080).
"""
SECTIONS: Final = {
    "listen": "Addresses and identity",
    "data.dir": "The log",
    "log.cleaner.enable": "Compaction",
    "group.min.session.timeout.ms": "Groups and offsets",
    "auto.create.topics.enable": "Topics",
    "upstream.bootstrap.servers": "In front of a Kafka cluster (docs/gateway.md)",
    "max.connections": "Connections",
    "log.format": "Logs",
}


def render() -> str:
    """Return the text of the example file."""
    return "\n".join([HEAD, *_lines()])


def _lines() -> Iterator[str]:
    for field in msgspec.structs.fields(Settings):
        if field.encode_name in SECTIONS:
            yield f"# --- {SECTIONS[field.encode_name]}\n"
        assert get_origin(field.type) is Annotated, f"{field.name} has no sentence"
        sentence = " ".join(extra for extra in get_args(field.type) if isinstance(extra, str))
        yield from textwrap.wrap(sentence, 100, initial_indent="# ", subsequent_indent="# ")
        yield from textwrap.wrap(
            f"Expected: {setting_kind(field.type).expected}.",
            100,
            initial_indent="# ",
            subsequent_indent="# ",
        )
        yield f'"{field.encode_name}" = {format_toml_value(field.default)}\n'


def format_toml_value(value: object) -> str:
    """Return a setting's value as TOML; None becomes an empty text."""
    if value is None:
        return '""'
    if isinstance(value, (Address, Path)):
        value = str(value)
    return json.dumps(value)  # strings, numbers and booleans are written alike in TOML
