# SPDX-License-Identifier: Apache-2.0
"""Renders docs/settings.md from the settings themselves; `groupkeeper settings --markdown` prints it."""

from collections.abc import Iterator
from typing import Final, get_args

import msgspec

from coordinator.config.example import SECTIONS, format_toml_value
from coordinator.config.settings import Settings
from coordinator.config.values import setting_kind

BAR: Final = "\\|"
"""A bar within a cell of a table."""

HEAD: Final = """\
# Settings

This page lists every setting of `groupkeeper serve`; `groupkeeper settings --markdown` generates it from the program.
Later sources win: the file that `--config` names, then the environment (`GROUPKEEPER_LOG_FLUSH=os` for `log.flush`),
then flags (`--set log.flush=os`). Settings that Kafka 4.4 also has use its names, defaults and bounds. Times are in
milliseconds and sizes in bytes, unless a name says otherwise.

`groupkeeper settings` prints a configuration file with all settings
([deploy/config.example.toml](../deploy/config.example.toml)). If a name or value is wrong, the node does not start; it
prints one line with the setting, where it was set, and what was expected.
"""


def render() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *_rows(), ""])


def _rows() -> Iterator[str]:
    yield "| setting | meaning | default | expected |"
    yield "|---|---|---|---|"
    for field in msgspec.structs.fields(Settings):
        if field.encode_name in SECTIONS:
            yield f"| **{SECTIONS[field.encode_name]}** | | | |"
        sentence = " ".join(extra for extra in get_args(field.type) if isinstance(extra, str))
        default = "nothing" if field.default is None else f"`{format_toml_value(field.default)}`"
        cells = (f"`{field.encode_name}`", sentence, default, setting_kind(field.type).expected)
        yield f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"
