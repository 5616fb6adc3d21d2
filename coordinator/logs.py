# SPDX-License-Identifier: Apache-2.0
"""Structured logs: key=value lines on a terminal, one JSON object a line elsewhere, always to one stream.

Every module takes its logger from `get_logger` here, never from structlog itself: structlog imports rich for
tracebacks that we do not want, and that alone takes 100 of the 600 ms that a start may take.
"""

import importlib
import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, Final, Literal, TextIO, cast

import msgspec


def _import_structlog_without_rich() -> None:
    """Import structlog with rich made to look absent, unless it is there already; see the module's head."""
    modules = cast(dict[str, object], sys.modules)
    hide = "rich" not in modules
    if hide:
        modules["rich"] = None  # an import of a name with None fails at once, as if it were not installed
    try:
        importlib.import_module("structlog")
    finally:
        if hide:
            del modules["rich"]


_import_structlog_without_rich()

import structlog  # noqa: E402 - after rich was hidden from it

Fields = MutableMapping[str, Any]
Logger = structlog.typing.FilteringBoundLogger

HIDDEN: Final = "[hidden]"
_FIRST: Final = ("timestamp", "level", "logger", "event")
_SECRET: Final = re.compile(r"(?i)(password|passwd|secret|token|credential|authorization|private.?key|jaas)")


def get_logger(name: str) -> Logger:
    """A logger whose lines carry `logger=name`; may be called before `configure`."""
    return cast(Logger, structlog.get_logger(name))


def configure(
    form: Literal["auto", "console", "json"] = "auto",
    level: str = "info",
    stream: TextIO | None = None,
    node: int | None = None,
) -> None:
    """Send our log lines, and those of libraries that use `logging`, to `stream` (default: standard error).

    Where several nodes write to the same one, each line says by its `node` who wrote it.

    `form` and `level` are the settings log.format and log.level. A stream that cannot be written is no reason
    to fail: its lines are lost.
    """
    stream = stream or sys.stderr
    terminal = stream.isatty()
    json = form == "json" or (form == "auto" and not terminal)
    threshold = logging.getLevelNamesMapping()[level.upper()]

    def add_node(_logger: object, _method: str, fields: Fields) -> Fields:
        fields.setdefault("node", node)
        return fields

    common: list[structlog.typing.Processor] = [
        *([add_node] if node is not None else []),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        hide_secrets,
    ]
    rendering = _json_rendering() if json else _console_rendering(colors=terminal)
    structlog.configure(
        processors=[_add_name, *common, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=lambda name="groupkeeper": _LineLogger(stream, name),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(_Unbreakable(stream))
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *common],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    logging.basicConfig(handlers=[handler], level=threshold, force=True)


def hide_secrets(_logger: object, _method: str, fields: Fields) -> Fields:
    """Replace the values of fields whose name sounds like a secret, inside mappings too."""
    for key, value in fields.items():
        if _SECRET.search(str(key)):
            fields[key] = HIDDEN
        elif isinstance(value, dict):
            fields[key] = hide_secrets(None, "", dict(value))
    return fields


def _add_name(logger: "_LineLogger", _method: str, fields: Fields) -> Fields:
    fields["logger"] = logger.name
    return fields


def _escape_control_characters(_logger: object, _method: str, fields: Fields) -> Fields:
    """Keep what clients send (ids, reasons) from moving the cursor or starting a line of its own."""
    for key, value in fields.items():
        if isinstance(value, str) and not value.isprintable():
            fields[key] = value.encode("unicode_escape").decode()
    return fields


def _json_rendering() -> list[structlog.typing.Processor]:
    encoder = msgspec.json.Encoder(enc_hook=str)

    def render(_logger: object, _method: str, fields: Fields) -> str:
        line = {**{key: fields.pop(key) for key in _FIRST if key in fields}, **fields}
        try:
            return encoder.encode(line).decode()
        except (
            TypeError,
            ValueError,
        ):  # a key that is no text, or text that is no UTF-8: show it all the same
            return encoder.encode({repr(key): repr(value) for key, value in line.items()}).decode()

    return [structlog.processors.format_exc_info, render]


def _console_rendering(colors: bool) -> list[structlog.typing.Processor]:
    plain = structlog.dev.plain_traceback
    return [
        _escape_control_characters,
        structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain, sort_keys=False),
    ]


class _Unbreakable:
    """A stream whose failures (a full disk, a reader that has gone) do not reach who logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        try:
            self._stream.write(text)
        except (OSError, ValueError):  # ValueError: the stream is closed
            return

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            return


class _LineLogger:
    """What structlog calls with the finished line."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream = _Unbreakable(stream)
        self.name = name

    def msg(self, line: str) -> None:
        self._stream.write(line + "\n")  # one write, so that lines of several threads do not mix
        self._stream.flush()

    debug = info = warning = error = critical = msg
