# SPDX-License-Identifier: Apache-2.0
"""Log lines: their two forms, what is hidden in them, and what must not go wrong."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from coordinator import logs


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def json_lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_elsewhere_than_on_a_terminal_a_line_is_a_json_object() -> None:
    stream = io.StringIO()
    logs.configure("auto", stream=stream)
    logs.get_logger("loader").info("loaded partition", partition=3, took_ms=1.5)
    (line,) = json_lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "level": "info",
        "logger": "loader",
        "event": "loaded partition",
        "partition": 3,
        "took_ms": 1.5,
    }


def test_on_a_terminal_a_line_is_words_and_key_value_pairs() -> None:
    stream = Terminal()
    logs.configure("auto", stream=stream)
    logs.get_logger("loader").info("loaded partition", partition=3)
    assert "loaded partition" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_the_form_can_be_chosen() -> None:
    stream = Terminal()
    logs.configure("json", stream=stream)
    logs.get_logger("a").info("one")
    assert json_lines(stream)[0]["event"] == "one"
    logs.configure("console", stream=(plain := io.StringIO()))
    logs.get_logger("a").info("two", partition=3)
    assert "two" in plain.getvalue()
    assert plain.getvalue().endswith("partition=3\n")


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_only_lines_as_grave_as_the_level_are_written(level: str) -> None:
    names = ["debug", "info", "warning", "error"]
    stream = io.StringIO()
    logs.configure("json", level, stream)
    for name in names:
        getattr(logs.get_logger("ours"), name)("x")
        getattr(logging.getLogger("theirs"), name)("x")
    written = [line["level"] for line in json_lines(stream)]
    assert written == [name for name in names[names.index(level) :] for _ in range(2)]


@pytest.mark.parametrize("form", ["console", "json"])
def test_lines_of_libraries_look_like_ours(form: Any) -> None:
    stream = io.StringIO()
    logs.configure(form, stream=stream)
    logging.getLogger("asyncio").warning("Task %s was never awaited", 7)
    assert "asyncio" in stream.getvalue()
    assert "Task 7 was never awaited" in stream.getvalue()
    assert stream.getvalue().startswith("{") is (form == "json")


@pytest.mark.parametrize("form", ["console", "json"])
def test_an_exception_brings_its_traceback(form: Any) -> None:
    stream = io.StringIO()
    logs.configure(form, stream=stream)
    try:
        dict[str, int]()["lost"]
    except KeyError:
        logs.get_logger("a").exception("failed")
    assert "Traceback (most recent call last)" in stream.getvalue()
    assert "KeyError: 'lost'" in stream.getvalue()


@pytest.mark.parametrize("form", ["console", "json"])
def test_secrets_are_never_written(form: Any) -> None:
    stream = io.StringIO()
    logs.configure(form, stream=stream)
    nested = {"sasl.jaas.config": "hunter2", "port": 1}
    logs.get_logger("a").info("start", ssl_key_password="hunter2", API_TOKEN="hunter2", settings=nested)
    assert "hunter2" not in stream.getvalue()
    assert stream.getvalue().count(logs.HIDDEN) == 3
    assert nested["sasl.jaas.config"] == "hunter2", "the caller's own mapping changed"


@pytest.mark.parametrize("form", ["console", "json"])
def test_what_clients_send_can_neither_start_a_line_nor_steer_a_terminal(form: Any) -> None:
    stream = io.StringIO()
    logs.configure(form, stream=stream)
    logs.get_logger("a").info("join", client_id="a\nERROR forged\x1b[2J\r")
    assert stream.getvalue().count("\n") == 1
    assert not set(stream.getvalue()) & {"\x1b", "\r"}


@pytest.mark.parametrize(
    "fields", [{"path": "\udcff"}, {"by": {(1, 2): "x"}}, {"what": object()}, {"data": b"\0"}]
)
@pytest.mark.parametrize("form", ["console", "json"])
def test_a_value_of_any_kind_can_be_logged(form: Any, fields: dict[str, Any]) -> None:
    stream = io.TextIOWrapper(raw := io.BytesIO(), encoding="utf-8")
    logs.configure(form, stream=stream)
    logs.get_logger("a").info("odd", **fields)
    assert b"odd" in raw.getvalue()


def test_a_stream_that_fails_does_not_reach_who_logs() -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(28, "No space left on device")

    logs.configure("json", stream=Full())
    logs.get_logger("a").error("lost")
    logging.getLogger("b").error("lost")
    logs.configure("json", stream=(closed := io.StringIO()))
    closed.close()
    logs.get_logger("a").error("lost")


def test_importing_the_logs_does_not_import_rich() -> None:
    code = "import sys, coordinator.logs; assert 'rich' not in sys.modules; import rich.table"
    subprocess.run([sys.executable, "-c", code], check=True)
