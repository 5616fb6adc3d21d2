# SPDX-License-Identifier: Apache-2.0
"""The documentation as a site, its commands, and what its pages promise of the files beside them."""

import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest
import typer
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from typer import core

import audit.cli
from bench.installed import groupkeeper
from bench.ports import free_port_run
from coordinator.cli.main import app
from coordinator.config import Settings
from tests.kafka.broker import KafkaBroker
from tests.support.pages import ROOT, blocks, commands, is_test, without_blocks
from tests.support.processes import ServerProcess, environment
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


PAGES: Final = {
    str(page.relative_to(ROOT)): page.read_text(encoding="utf-8")
    for folder in (ROOT, ROOT / "bench", ROOT / "docs")
    for page in sorted(folder.glob("*.md"))
}
TESTED_ELSEWHERE: Final = {
    "README.md",  # tests/test_readme.py
    "docs/maintenance.md",  # tests/test_maintenance.py
}
(GATEWAY,) = commands(PAGES["docs/gateway.md"])

# What needs more than a test has (systemd, Docker, a Kubernetes cluster) is not run: such a test holds what the command
# reads to the rules of the program that reads it.
RUN_BY: Final = {
    "docs/audit.md": {
        "make install-audit": "packaging/test_fresh_clone.py::test_the_audit_is_installed_and_finds_nothing_wrong",
        "docker build": "packaging/test_image.py::test_the_cron_job_takes_the_image_that_the_dockerfile_tells_to_build",
        "docker run": "packaging/test_image.py::test_the_wheel_of_the_image_audits_the_log_that_it_wrote",
        "groupkeeper audit": "packaging/test_fresh_clone.py::test_the_audit_is_installed_and_finds_nothing_wrong",
        "spark-submit": "audit/test_package.py::test_a_cluster_audits_with_them",
        "make -C": "packaging/test_units.py::test_the_page_installs_the_units_of_the_audit",
        "cp": "packaging/test_units.py::test_the_page_installs_the_units_of_the_audit",
        "systemctl enable": "packaging/test_units.py::test_the_page_installs_the_units_of_the_audit",
    },
    "docs/gateway.md": {"groupkeeper serve": "test_docs.py::test_the_ten_lines_make_a_gateway"},
    "docs/http.md": {"curl": "admin/test_overview_routes.py::test_the_documented_command_asks_for_groups"},
    "docs/installing.md": {
        "useradd": "packaging/test_units.py::test_the_page_installs_what_the_unit_starts",
        "git clone": "packaging/test_fresh_clone.py::test_what_the_page_types_for_systemd_installs_it",
        "install": "packaging/test_units.py::test_the_page_installs_the_file_of_settings",
        "cp": "packaging/test_units.py::test_the_page_installs_what_the_unit_starts",
        "systemctl enable": "packaging/test_units.py::test_the_page_installs_what_the_unit_starts",
        "helm install": "packaging/test_helm.py::test_the_page_installs_the_chart",
        "GRAFANA_PASSWORD=...": "packaging/test_compose.py::test_the_page_starts_the_files",
    },
    "docs/offsets.md": {
        "kafka-console-consumer.sh": (
            "kafka/test_offsets_topic.py::test_the_offsets_formatter_shows_every_commit_in_its_order"
        ),
    },
    "docs/recipes.md": {
        ".venv/bin/groupkeeper topics create": (
            "test_recipes.py::test_records_of_a_cluster_are_read_once_by_a_group_that_is_here"
        ),
    },
    "docs/troubleshooting.md": {
        "groupkeeper groups": "cli/test_cluster.py::test_the_documented_command_sets_offsets",
        "groupkeeper log repair": (
            "crash/test_taken_away.py::test_a_cut_journal_stops_the_start_until_the_loss_is_accepted"
        ),
    },
}
"""By page: how a command begins, and the test that runs it."""


def test_every_command_in_a_block_is_run_by_a_test() -> None:
    for page in PAGES.keys() - TESTED_ELSEWHERE:
        known, found = RUN_BY.get(page, {}), commands(PAGES[page])
        assert [each for each in found if not each.startswith(tuple(known))] == [], page
        assert [each for each in known if not any(line.startswith(each) for line in found)] == [], page
    tests = [f"tests/{name}" for known in RUN_BY.values() for name in known.values()]
    assert [name for name in tests if not is_test(name)] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_commands_stand_in_blocks_that_say_that_they_are_commands(page: str) -> None:
    """Neither in blocks without a language nor in indented ones, which the test above would not see."""
    assert blocks(PAGES[page], "") == []
    assert re.findall(r"\n\n {4,}\S.*", without_blocks(PAGES[page])) == []


def quoted(page: str) -> list[str]:
    """What a page shows as code: the text between backquotes, and each command of a block."""
    inline = re.findall(r"(?<!`)`([^`]+)`(?!`)", without_blocks(page))
    return [" ".join(each.split()) for each in inline] + commands(page)


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
        if words[:2] == ["python", "-m"]:
            assert find_spec(words[2]) is not None, code


@pytest.mark.kafka
@pytest.mark.slow
def test_the_ten_lines_make_a_gateway(tmp_path: Path) -> None:
    """Two nodes of ours and a broker are told to clients, and a group is kept; all of it on loopback."""
    broker = KafkaBroker(tmp_path / "kafka")
    port = free_port_run(20)  # of our nodes; behind them those of metrics, and of brokers
    given = {
        "0.0.0.0:9092": f"127.0.0.1:{port}",
        "/var/lib/groupkeeper": str(tmp_path / "data"),
        "kafka-gateway.example": "localhost",
        "kafka-1.internal:9092,kafka-2.internal:9092": broker.bootstrap,
        "base=10000": f"base={port + 10}",
    }
    line = GATEWAY
    for theirs, ours in given.items():
        assert line.count(theirs) == 1
        line = line.replace(theirs, ours)
    metrics = environment({"GROUPKEEPER_METRICS_LISTEN": f"127.0.0.1:{port + 4}"})
    try:
        broker.start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("work", 1)])["work"].result(120)
        gateway = ServerProcess([*groupkeeper(), *shlex.split(line)[1:]], tmp_path / "log", env=metrics)
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
