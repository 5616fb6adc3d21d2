# SPDX-License-Identifier: Apache-2.0
"""Log lines: their two forms, what is hidden in them, and what must not go wrong."""

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import structlog

from coordinator.telemetry import logs
from coordinator.telemetry.log_limits import EVENTS_MAX, LINES_PER_PERIOD_MAX, PERIOD_S, RateLimit
from coordinator.telemetry.log_writer import QueuedSink
from tests.support.processes import environment
from tests.support.raw import commit_offsets, create_topic
from tests.support.service import Service, wait_until


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


@pytest.mark.process
def test_importing_the_logs_does_not_import_rich() -> None:
    code = "import sys, coordinator.telemetry.logs; assert 'rich' not in sys.modules; import rich.table"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- short, few, and never waited for ---


@pytest.mark.parametrize("form", ["console", "json"])
def test_long_values_are_cut_and_the_cut_is_marked(form: Any) -> None:
    stream = io.StringIO()
    logs.configure(form, stream=stream)
    long = "x" * 360_000
    nested = {"a": long, "b": [long] * 1_000}
    logs.get_logger("a").info("bad", reason=long, data=b"y" * 360_000, nested=nested)
    (line,) = stream.getvalue().splitlines()
    assert "x" * 256 + "... (359744 more)" in line
    assert "... (936 more)" in line, "elements of the list"
    assert len(line) < 40_000
    try:
        int(long)
    except ValueError:
        logs.get_logger("a").exception("failed")
    assert len(stream.getvalue()) < 80_000


def test_what_shows_nothing_or_turns_text_around_is_escaped_in_json() -> None:
    stream = io.StringIO()
    logs.configure("json", stream=stream)
    hostile = "a\x9b2Jb\u202ecod.exe\u2066\u200b\ufeff\U000e0041\x7f\u2028"
    logs.get_logger("a").info("join", client_id=hostile, owner="Jürgen 日本")
    assert json_lines(stream)[0]["client_id"] == hostile, "it is the same text to who parses it"
    assert [c for c in stream.getvalue() if not c.isprintable()] == ["\n"]
    assert "Jürgen 日本" in stream.getvalue()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_flood_of_one_event_is_summed_up_and_the_others_are_written() -> None:
    clock = Clock()
    limit = RateLimit(clock)
    assert sum(limit.admit("a", "bad", "info") for _ in range(1_000)) == LINES_PER_PERIOD_MAX
    assert limit.admit("a", "good", "info")
    assert limit.take_suppressed_counts() == []
    clock.now = PERIOD_S
    assert limit.take_suppressed_counts() == [("a", "bad", "info", 1_000 - LINES_PER_PERIOD_MAX)]
    assert limit.take_suppressed_counts() == []
    assert limit.admit("a", "bad", "info")
    assert sum(limit.admit("a", f"event {number}", "info") for number in range(100_000)) < 3_000
    assert len(limit._seen) <= EVENTS_MAX + 1, "and all the others together"


def test_what_is_flooded_is_counted_without_a_line() -> None:
    clock = Clock()
    stream = io.StringIO()
    logs.configure("json", stream=stream, now_s=clock)
    log = logs.get_logger("groups")
    written = 0
    for _ in range(1_000):
        if not logs.suppress_if_flooded("groups", "joined"):
            log.info("joined")
            written += 1
    assert written == LINES_PER_PERIOD_MAX
    assert not logs.suppress_if_flooded("groups", "left")
    clock.now = PERIOD_S
    assert not logs.suppress_if_flooded("groups", "joined"), "the period is over"
    log.info("joined")
    events = [json.loads(line)["event"] for line in stream.getvalue().splitlines()]
    assert events == ["joined"] * LINES_PER_PERIOD_MAX + ["900 more like this", "joined"]


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_line_says_how_many_more_there_were(form: Any) -> None:
    clock = Clock()
    stream = io.StringIO()
    logs.configure(form, stream=stream, now_s=clock)
    for _ in range(150):
        logs.get_logger("ours").warning("bad")
        logging.getLogger("theirs").warning("bad")
    clock.now = PERIOD_S
    logs.get_logger("ours").info("something else")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2 * LINES_PER_PERIOD_MAX + 3
    assert [("50 more like this" in line, "warning" in line) for line in lines[-3:]] == [
        (True, True),
        (True, True),
        (False, False),
    ]


def test_a_reader_that_does_not_read_stops_nobody() -> None:
    """Lines that find the queue full are dropped and counted, and a line says so to who reads at last."""
    reading, writing = os.pipe()
    sink = QueuedSink(writing, lambda: [], lambda count: f"dropped {count}\n", bytes_max=10_000)
    line = "x" * 999 + "\n"
    for _ in range(1_000):
        sink.write(line)
    assert sink.dropped > 800
    read = b""
    while b"dropped" not in read:
        read += os.read(reading, 1 << 16)
    sink.drain(30.0)
    assert read.count(b"\n") - 1 + sink.dropped == 1_000
    assert read.endswith(f"dropped {sink.dropped}\n".encode())
    os.close(reading)


@pytest.mark.process
def test_a_node_serves_and_stops_though_nobody_reads_its_log(tmp_path: Path) -> None:
    """Its standard error is a pipe that is full from the start."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4_096)
    os.set_blocking(writing, True)
    service = Service(tmp_path)
    with subprocess.Popen(
        service.command(), stdout=subprocess.DEVNULL, stderr=writing, env=environment()
    ) as process:
        try:
            wait_until(lambda: service.http_status("/ready") == 200, what="the node to serve")
            create_topic(service.bootstrap, "t", 1)
            commit_offsets(service.bootstrap, "g", "t", {0: 7})
            process.terminate()
            assert process.wait(120) == 0
        finally:
            process.kill()
            os.close(writing)
            os.close(reading)


@pytest.mark.process
def test_the_end_of_a_process_writes_what_is_queued() -> None:
    code = (
        "from coordinator.telemetry import logs; logs.configure('json', queued=True)\n"
        "for n in range(90): logs.get_logger('a').info('line', n=n)\n"
        "for n in range(150): logs.get_logger('a').info('many')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["n"] for line in lines if line["event"] == "line"] == list(range(90))
    assert lines[-1]["event"] == "50 more like this"


@pytest.mark.process
def test_why_a_start_failed_is_the_last_line() -> None:
    code = (
        "from coordinator.telemetry import logs; logs.configure('json', queued=True)\n"
        "for n in range(900): logs.get_logger(str(n)).info('line')\n"
        "logs.write_last_line('no such address')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    assert len(lines) == 901
    assert lines[-1] == "groupkeeper: no such address"


@pytest.mark.process
def test_the_end_of_a_process_does_not_wait_for_a_reader_that_is_stuck() -> None:
    code = (
        "from coordinator.telemetry import logs; logs.configure('json', queued=True); logs.DRAIN_S\n"
        "for n in range(100_000): logs.get_logger(str(n % 900)).info('x', n='y' * 200)\n"
        "print(logs.dropped_line_count() > 0, flush=True); logs.drain(0.01)"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.read() == "True\n"
        assert process.wait(120) == 0
