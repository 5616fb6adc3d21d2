# SPDX-License-Identifier: Apache-2.0
"""The documentation as a site, its commands, and what its pages promise of the files beside them."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from typer import core

import audit.cli
from bench.ports import free_port_run
from coordinator.cli.main import app
from coordinator.config import Settings
from tests.documented import NOT_RUN, RUN_BY
from tests.kafka.broker import KafkaBroker
from tests.support.documented import Documented
from tests.support.pages import (
    HISTORY,
    PAGES,
    PROGRAMS,
    ROOT,
    blocks,
    commands,
    documented_commands,
    inline_code,
    is_command,
    is_test,
    languages,
    program,
    without_blocks,
)
from tests.workers.fronting import wait_until_all_serve

RUNBOOKS = (ROOT / "docs" / "runbooks.md").read_text(encoding="utf-8")
RULES = (ROOT / "deploy" / "prometheus.rules.yml").read_text(encoding="utf-8")


def test_every_alert_has_its_runbook_and_every_runbook_its_alert() -> None:
    alerts = re.findall(r"- alert: (\w+)", RULES)
    assert alerts
    assert sorted(re.findall(r"^## (\w+)$", RUNBOOKS, re.MULTILINE)) == sorted(alerts)


def test_a_runbook_says_what_an_alert_means_and_what_to_do() -> None:
    for section in RUNBOOKS.split("\n## ")[1:]:
        assert "**Means.**" in section, section
        assert "**Do.**" in section, section


def test_the_readme_says_at_its_start_what_is_not_protected_and_what_expires() -> None:
    start = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Other ways to start")[0]
    for word in (
        "TLS",
        "authentication",
        "authorization",
        "replicates nothing",
        "backup",
        "docs/security.md",
    ):
        assert word in start, word
    assert Settings().offsets_retention_minutes == 7 * 24 * 60
    assert "expire after seven days" in start
    assert "`offsets.retention.minutes`" in start


def test_the_page_on_security_has_a_section_for_each_thing_that_is_left_to_its_reader() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    titles = " ".join(re.findall(r"^## (.+)$", page, re.MULTILINE))
    for word in ("client", "host", "disk", "replication", "Backups", "expire", "Upgrades"):
        assert word in titles, word


def test_every_command_is_run_by_a_test_or_has_a_reason_why_not() -> None:
    """Each command stands in `tests/documented.py` exactly as a page has it, and no other does."""
    found = {command for name in PAGES.keys() - {HISTORY} for command in documented_commands(PAGES[name])}
    run = {command for commands_of_test in RUN_BY.values() for command in commands_of_test}
    assert sorted(found - run - NOT_RUN.keys()) == []
    assert sorted((run | NOT_RUN.keys()) - found) == []
    assert sorted(run & NOT_RUN.keys()) == []
    assert [name for name in RUN_BY if not is_test(name)] == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_stand_where_the_test_above_sees_them(page: str) -> None:
    """Not in blocks without a language, in indented blocks, or in blocks of output; in sentences, by PROGRAMS."""
    assert languages(PAGES[page]) <= {"sh", "python", "sql", "text"}
    assert re.findall(r"\n\n {4,}\S.*", without_blocks(PAGES[page])) == []
    assert [
        line for text in blocks(PAGES[page], "text") for line in text.splitlines() if is_command(line)
    ] == []
    assert {program(command) for command in commands(PAGES[page])} <= PROGRAMS


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("groupkeeper groups reset", False),
        ("groupkeeper groups reset orders --to-latest", True),
        ("groupkeeper partitions move 17", True),
        (".venv/bin/groupkeeper --version", True),
        ("make", False),
        ("make docs", True),
        ("A=b docker compose up", True),
        ("kafka-topics.sh --list", False),
        ("kafka-topics.sh --list --bootstrap-server BROKER", True),
        ("log.flush = os", False),
    ],
)
def test_a_command_is_whole_if_it_can_be_typed_as_it_is(text: str, whole: bool) -> None:
    assert is_command(text) == whole


def quoted(page: str) -> list[str]:
    """What a page shows as code: the text between backquotes, and each command of a block."""
    return inline_code(page) + commands(page)


def unknown(words: list[str]) -> list[str]:
    """Of the words behind `groupkeeper` those that it does not know: names of commands, and flags."""
    command: object = typer.main.get_command(app)
    while isinstance(command, core.TyperGroup) and words and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return [] if words[0].isupper() else words[:1]  # COMMAND stands for any
        command = command.commands[words.pop(0)]
    assert isinstance(command, core.TyperCommand | core.TyperGroup)
    known = {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)} | {"--help"}
    if command.name == "audit":
        known |= set(re.findall(r"--[\w-]+", audit.cli.parser("groupkeeper audit").format_help()))
    flags = (word.partition("=")[0] for word in words if word.startswith("-"))
    return [flag for flag in flags if flag.strip("-") and flag not in known]


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_flags_that_a_page_names_are_there(page: str) -> None:
    """Of `groupkeeper`, the Makefile's targets, and modules that Python is to run."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for code in quoted(PAGES[page]):
        words = re.sub(r"[\[\]|()]", " ", code).split()
        if words[:1] == ["groupkeeper"] or words[:1] == [".venv/bin/groupkeeper"]:
            assert unknown(words[1:]) == [], code
        if words[:1] == ["make"]:
            assert not words[1:] or {words[1]} & {*targets, "-C"}, code
        if words[:2] in (["python", "-m"], [".venv/bin/python", "-m"]):
            assert find_spec(words[2]) is not None, code


@pytest.mark.kafka
@pytest.mark.slow
def test_the_ten_lines_make_a_gateway(documented: Documented, tmp_path: Path) -> None:
    """Two nodes of ours and a broker are told to clients, and a group is kept; all of it on loopback."""
    (serve,) = documented.commands
    broker = KafkaBroker(tmp_path / "kafka")
    port = free_port_run(20)  # of our nodes; behind them those of metrics, and of brokers
    places = {
        "0.0.0.0:9092": f"127.0.0.1:{port}",
        "/var/lib/groupkeeper": tmp_path / "data",
        "kafka-gateway.example": "localhost",
        "kafka-1.internal:9092,kafka-2.internal:9092": broker.bootstrap,
        "base=10000": f"base={port + 10}",
    }
    metrics = {"GROUPKEEPER_METRICS_LISTEN": f"127.0.0.1:{port + 4}"}
    try:
        broker.start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("work", 1)])["work"].result(120)
        gateway = documented.start(serve, places, variables=metrics)
        try:
            wait_until_all_serve(gateway)
            consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "orders"})
            brokers = consumer.list_topics(timeout=120).brokers
            assert {(id_, each.host, each.port) for id_, each in brokers.items()} == {
                (1_000_001, "localhost", port),
                (1_000_002, "localhost", port + 1),
                (1, "localhost", port + 11),
            }
            consumer.commit(offsets=[TopicPartition("work", 0, 7)], asynchronous=False)
            consumer.close()
        finally:
            assert gateway.terminate() == 0, gateway.log_tail()
    finally:
        broker.close()
