# SPDX-License-Identifier: Apache-2.0
"""Structured logs: key=value lines on a terminal, one JSON object a line elsewhere, always to one stream.

Long texts are cut, an event that comes too often is summed up (log_limits), and a service writes through a queue, so
that a reader that does not read stops no part of the service (log_writer).

Every module takes its logger from `get_logger` here, never from structlog itself: structlog imports rich for
tracebacks that we do not want, and that alone takes 100 of the 600 ms that a start may take.
"""

import atexit
import importlib
import logging
import re
import sys
import time
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, Final, Literal, TextIO, cast

import msgspec

from coordinator.telemetry.escaping import escape_unseen
from coordinator.telemetry.log_limits import (
    EVENT_CHARACTERS_MAX,
    TRACEBACK_CHARACTERS_MAX,
    RateLimit,
    shorten_value,
)
from coordinator.telemetry.log_writer import DirectSink, LineSink, QueuedSink


def _import_structlog_without_rich() -> None:
    """Import structlog as if rich were not installed, unless rich is imported already; see the module's docstring."""
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
Processor = structlog.typing.Processor

HIDDEN: Final = "[hidden]"
_FIRST: Final = ("timestamp", "level", "logger", "event")
DRAIN_S: Final = 2.0
"""The seconds that the end of a process waits for a reader of its log."""
_queue: "tuple[QueuedSink, _Gate] | None" = None
_gate: "_Gate | None" = None
_SECRET: Final = re.compile(r"(?i)(password|passwd|secret|token|credential|authorization|private.?key|jaas)")


def get_logger(name: str) -> Logger:
    """Return a logger whose lines carry `logger=name`; may be called before `configure`."""
    return cast(Logger, structlog.get_logger(name))


def configure(
    form: Literal["auto", "console", "json"] = "auto",
    level: str = "info",
    stream: TextIO | None = None,
    node: int | str | None = None,
    *,
    queued: bool = False,
    now_s: Callable[[], float] = time.monotonic,
) -> None:
    """Send our log lines, and those of libraries that use `logging`, to `stream` (default: standard error).

    If several nodes write to the same stream, the `node` of each line names its writer.

    `form` and `level` are the settings log.format and log.level. A stream that cannot be written is no reason
    to fail: its lines are lost. With `queued` no writer waits for a slow reader: see
    `dropped_line_count` and `drain`.
    `now_s` is the clock by which floods of one event are summed up.
    """
    stream = stream or sys.stderr
    terminal = stream.isatty()
    json = form == "json" or (form == "auto" and not terminal)
    threshold = logging.getLevelNamesMapping()[level.upper()]

    def add_node(_logger: object, _method: str, fields: Fields) -> Fields:
        fields.setdefault("node", node)
        return fields

    common: list[Processor] = [
        *([add_node] if node is not None else []),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        hide_secrets,
        _shorten,
    ]
    rendering = _json_rendering() if json else _console_rendering(colors=terminal)
    gate = _use_gate(_Gate([*common, *rendering], now_s))
    descriptor = _descriptor(stream) if queued else None
    sink: LineSink = DirectSink(stream)
    if descriptor is not None:
        sink = QueuedSink(descriptor, gate.overdue, gate.dropped_line)
    gate.sink = sink
    structlog.configure(
        processors=[_add_name, gate.admit, *common, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=lambda name="groupkeeper": _LineLogger(sink, name),
        cache_logger_on_first_use=True,
    )
    handler = _of_libraries(sink, gate, common, rendering)
    logging.basicConfig(handlers=[handler], level=threshold, force=True)
    if isinstance(sink, QueuedSink):
        _use_queue(sink, gate)


def _of_libraries(
    sink: LineSink, gate: "_Gate", common: list[Processor], rendering: list[Processor]
) -> logging.Handler:
    """Return a handler that writes the lines of libraries that use `logging`."""
    handler = logging.StreamHandler(sink)
    handler.addFilter(gate.admit_record)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *common],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    return handler


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):  # no file, or a closed one
        return None


def _use_gate(gate: "_Gate") -> "_Gate":
    global _gate  # noqa: PLW0603 - as there is one configuration in a process
    _gate = gate
    return gate


def _use_queue(sink: QueuedSink, gate: "_Gate") -> None:
    global _queue  # noqa: PLW0603 - as there is one standard error in a process
    _queue = (sink, gate)
    atexit.register(drain)


def drain(timeout_s: float = DRAIN_S) -> None:
    """Return once every line is written, or after `timeout_s` if the log is not read; for the end of a process."""
    if _queue is not None:
        sink, gate = _queue
        for line in gate.overdue(at_end=True):
            sink.write(line)
        sink.drain(timeout_s)


def write_last_line(message: str) -> None:
    """Write `message` as the last line on standard error, after those that still wait to be written."""
    drain()
    sys.stderr.write(f"groupkeeper: {message}\n")


def suppress_if_flooded(logger: str, event: str) -> bool:
    """Return whether a line of this event would be summed up with others now, and count it if so.

    For events that can come a hundred thousand times: takes a tenth of the time of a line that is not written.
    """
    return _gate is not None and _gate.count_if_suppressed(logger, event)


def dropped_line_count() -> int:
    """Return the number of lines dropped since the start, because the lines before them were not read."""
    return 0 if _queue is None else _queue[0].dropped


class _Gate:
    """Lets lines through as often as RateLimit allows, and reports in a line how many it kept back."""

    def __init__(self, finish: Sequence[Processor], now_s: Callable[[], float]) -> None:
        self._finish = finish
        self._limit = RateLimit(now_s)
        self.sink: LineSink

    def admit(self, _logger: object, method: str, fields: Fields) -> Fields:
        """Drop a line of structlog, by raising DropEvent, if its event came too often."""
        if not self._admit(fields["logger"], str(fields["event"]), method):
            raise structlog.DropEvent
        return fields

    def count_if_suppressed(self, logger: str, event: str) -> bool:
        """Return whether a line would be kept back, and count it if so."""
        return self._limit.count_if_suppressed(logger, event)

    def admit_record(self, record: logging.LogRecord) -> bool:
        """Return whether a record of `logging` may be written."""
        return self._admit(record.name, str(record.msg), record.levelname.lower())

    def _admit(self, logger: str, event: str, level: str) -> bool:
        for line in self.overdue():
            self.sink.write(line)
        return self._limit.admit(logger, event, level)

    def overdue(self, *, at_end: bool = False) -> list[str]:
        """Return lines that report how many were kept back in the periods that are over."""
        return [
            self._line(level, logger, f"{count} more like this", like=event)
            for logger, event, level, count in self._limit.take_suppressed_counts(at_end=at_end)
        ]

    def dropped_line(self, count: int) -> str:
        """Return a line that reports how many lines found the queue full."""
        return self._line(
            "warning", "logs", "log lines were dropped: the reader of the log is too slow", lines=count
        )

    def _line(self, level: str, logger: str, event: str, **fields: object) -> str:
        line: Any = {"logger": logger, "event": event, **fields}
        for processor in self._finish:
            line = processor(None, level, line)
        return f"{line}\n"


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


def _shorten(_logger: object, _method: str, fields: Fields) -> Fields:
    """Cut long values, because clients choose the length of an id or a reason."""
    for key, value in fields.items():
        if key == "event":
            fields[key] = shorten_value(value, EVENT_CHARACTERS_MAX)
        elif key != "exc_info" and not key.startswith("_"):  # fields that structlog passes on within a line
            fields[key] = shorten_value(value)
    return fields


def _shorten_traceback(_logger: object, _method: str, fields: Fields) -> Fields:
    """Cut the traceback that `format_exc_info` has written."""
    if "exception" in fields:
        fields["exception"] = shorten_value(fields["exception"], TRACEBACK_CHARACTERS_MAX)
    return fields


def _escape_control_characters(_logger: object, _method: str, fields: Fields) -> Fields:
    """Keep text from clients (ids, reasons) from moving the cursor or starting a line of its own."""
    for key, value in fields.items():
        if isinstance(value, str) and not value.isprintable():
            fields[key] = value.encode("unicode_escape").decode()
    return fields


def _json_rendering() -> list[Processor]:
    encoder = msgspec.json.Encoder(enc_hook=str)

    def render(_logger: object, _method: str, fields: Fields) -> str:
        line = {**{key: fields.pop(key) for key in _FIRST if key in fields}, **fields}
        try:
            return escape_unseen(encoder.encode(line).decode())
        except (
            TypeError,
            ValueError,
        ):  # a key that is no text, or text that is no UTF-8: show it all the same
            return escape_unseen(
                encoder.encode({repr(key): repr(value) for key, value in line.items()}).decode()
            )

    return [structlog.processors.format_exc_info, _shorten_traceback, render]


def _console_rendering(colors: bool) -> list[Processor]:
    plain = structlog.dev.plain_traceback
    return [
        _escape_control_characters,
        structlog.processors.format_exc_info,
        _shorten_traceback,
        structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain, sort_keys=False),
    ]


class _LineLogger:
    """The logger that structlog calls with the finished line."""

    def __init__(self, sink: LineSink, name: str) -> None:
        self._sink = sink
        self.name = name

    def msg(self, line: str) -> None:
        self._sink.write(line + "\n")

    debug = info = warning = error = critical = msg
