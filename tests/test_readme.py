# SPDX-License-Identifier: Apache-2.0
"""Every command and every line of code in README.md is run: some here, the others by the tests that `RUN_BY` names."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient

from bench import figures
from bench.installed import groupkeeper
from bench.ports import BROKERS, free_port_run, free_ports
from tests.kafka.broker import KafkaBroker
from tests.support.pages import blocks, commands, is_test, named_commands

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = "127.0.0.1:9092"
RESET = "groups reset orders --topic work:0 --to-offset 7 --unchecked"
GATEWAY = (
    ".venv/bin/groupkeeper serve --listen 127.0.0.1:9093 --data-dir gateway-data "
    f"--set upstream.bootstrap.servers={ADDRESS}"
)
DESCRIBE = ".venv/bin/groupkeeper groups describe orders --bootstrap 127.0.0.1:9093"
GIVE_BACK = ".venv/bin/groupkeeper give-back --group orders --data-dir gateway-data"
AUDIT = ".venv/bin/groupkeeper audit --log-dirs data --out audit-results --against 127.0.0.1:9092"

MEASURES = re.findall(r"`python -m bench (.+?)(?: --write)?`", figures.RESULTS.read_text())[0]

_CLONE: Final = "tests/packaging/test_fresh_clone.py::test_"
_IMAGE: Final = "tests/packaging/test_image.py::test_"
_HERE: Final = "tests/test_readme.py::test_"
RUN_BY: Final[dict[str, str]] = {
    "make run": f"{_CLONE}make_run_installs_and_serves_and_says_where",
    "make test": f"{_CLONE}make_test_runs_tests",
    "docker build -t groupkeeper .": f"{_IMAGE}what_the_image_holds_is_compiled_and_serves",
    "docker run -p 127.0.0.1:9092:9092 -p 127.0.0.1:9308:9308 -v groupkeeper:/data groupkeeper": (
        f"{_IMAGE}what_the_image_holds_is_compiled_and_serves"
    ),
    ".venv/bin/groupkeeper groups list": f"{_CLONE}the_commands_about_groups_show_what_was_committed",
    ".venv/bin/groupkeeper groups describe orders": f"{_CLONE}the_commands_about_groups_show_what_was_committed",
    f".venv/bin/groupkeeper {RESET}": f"{_CLONE}the_commands_about_groups_show_what_was_committed",
    "make demo": f"{_CLONE}make_demo_tells_both_acts",
    f"kafka-consumer-groups.sh --bootstrap-server {ADDRESS} --describe --group orders": (
        "tests/kafka/test_cli_tools.py::test_lag_is_what_kafkas_tool_shows"
    ),
    "make install": f"{_CLONE}what_the_page_types_for_systemd_installs_it",
    GATEWAY: f"{_HERE}the_gateway_serves_the_topics_of_the_cluster",
    GIVE_BACK: f"{_HERE}the_gateway_serves_the_topics_of_the_cluster",
    DESCRIBE: f"{_HERE}the_gateway_serves_the_topics_of_the_cluster",
    "make install-audit": f"{_CLONE}the_audit_is_installed_and_finds_nothing_wrong",
    AUDIT: f"{_CLONE}the_audit_is_installed_and_finds_nothing_wrong",
    f'make bench ARGS="{MEASURES}"': f"{_CLONE}make_bench_measures",
    "make bench ARGS=audit": f"{_CLONE}make_bench_audits_a_large_log",
    "python -m bench figures": f"{_HERE}the_figures_are_those_of_the_results",
    "make docs": f"{_CLONE}make_docs_builds_the_site",
}
"""Every command of README.md, and the test that runs it."""


def test_every_command_is_run_by_a_test() -> None:
    assert {*commands(README), *named_commands(README)} == set(RUN_BY)
    assert [name for name in RUN_BY.values() if not is_test(name)] == []


def test_the_figures_are_those_of_the_results() -> None:
    assert figures.main(["--check"]) == 0, "run: python -m bench figures"


@pytest.mark.kafka
@pytest.mark.slow
def test_the_gateway_serves_the_topics_of_the_cluster(tmp_path: Path) -> None:
    broker = KafkaBroker(tmp_path / "kafka")
    port, metrics = free_port_run(1), free_port_run(2)  # of a node's metrics, and of a gateway's
    (of_broker,) = free_ports(1, BROKERS)
    places = {"127.0.0.1:9093": f"127.0.0.1:{port}", "gateway-data": str(tmp_path / "data")}
    words = [places.get(word, word).replace(ADDRESS, broker.bootstrap) for word in GATEWAY.split()[1:]]
    environment = {
        **os.environ,
        "GROUPKEEPER_METRICS_LISTEN": f"127.0.0.1:{metrics}",
        "GROUPKEEPER_GATEWAY_PORT_BASE": str(of_broker - 1),
    }
    try:
        broker.start()
        AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=120)
        with (tmp_path / "output").open("wb") as output:
            running = subprocess.Popen(
                [*groupkeeper(), *words], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, env=environment
            )
        try:
            admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
            brokers = admin.list_topics(timeout=120).brokers.values()
            assert {of_broker, port} == {each.port for each in brokers}
            (program,) = blocks(README, "python")
            here = [sys.executable, "-c", program.replace(ADDRESS, f"127.0.0.1:{port}")]
            ran = subprocess.run(here, capture_output=True, text=True, check=True, timeout=120)
            assert "committed: 42" in ran.stdout
            describe = [*groupkeeper(), *DESCRIBE.replace("127.0.0.1:9093", f"127.0.0.1:{port}").split()[1:]]
            told = subprocess.run(describe, capture_output=True, text=True, check=True, timeout=120)
            assert "42" in told.stdout
            give_back = [*groupkeeper(), *(places.get(word, word) for word in GIVE_BACK.split()[1:])]
            moved = subprocess.run(give_back, capture_output=True, text=True, check=False, timeout=120)
            assert (moved.returncode, "would be given back" in moved.stdout) == (0, True), moved
            assert (
                "work" in AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=120).topics
            )
        finally:
            running.terminate()
            assert running.wait(120) == 0, (tmp_path / "output").read_text()
    finally:
        broker.close()


PAGES = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    *(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")),
)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_links_lead_somewhere(name: str) -> None:
    """Of each page that a reader may come to, to a file and, where one is named, to a heading in it."""
    page = ROOT / name
    for target, _, heading in re.findall(r"\]\(([^)#]*)(#([^)]+))?\)", page.read_text()):
        if target.startswith("http"):
            continue
        found = page.parent / target if target else page
        assert found.exists(), target
        assert not heading or heading in anchors(found), f"{target}#{heading}"


def anchors(page: Path) -> set[str]:
    """The headings and anchors of a page as links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    marked = set(re.findall(r'<a id="([^"]+)"></a>', page.read_text()))
    return marked | {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
