# SPDX-License-Identifier: Apache-2.0
"""Every command and every line of code in README.md is run: some here, the others by the tests that `RUN_BY` names."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient

from bench import figures
from bench.installed import groupkeeper
from bench.ports import BROKERS, free_ports
from tests.kafka.broker import KafkaBroker
from tests.support.missing import skip_or_fail
from tests.support.pages import blocks, commands, is_test, named_commands
from tests.support.service import Service, serving
from tests.support.waiting import wait_until

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = "127.0.0.1:9092"
RESET = "groups reset orders --topic work:0 --to-offset 7 --unchecked"
GATEWAY = (
    ".venv/bin/groupkeeper serve --listen 127.0.0.1:9093 --data-dir gateway-data "
    f"--set upstream.bootstrap.servers={ADDRESS}"
)
AUDIT = ".venv/bin/groupkeeper audit --log-dirs data --out audit-results --against 127.0.0.1:9092"

MEASURES = re.findall(r"`python -m bench (.+?)(?: --write)?`", figures.RESULTS.read_text())[0]

_CLONE: Final = "tests/packaging/test_fresh_clone.py::test_"
_IMAGE: Final = "tests/packaging/test_image.py::test_"
_HERE: Final = "tests/test_readme.py::test_"
RUN_BY: Final[dict[str, str]] = {
    "make run": f"{_CLONE}make_run_installs_compiles_and_serves",
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
    GATEWAY: f"{_HERE}the_gateway_serves_the_topics_of_the_cluster",
    "make install-audit": f"{_CLONE}the_audit_is_installed_and_finds_nothing_wrong",
    AUDIT: f"{_CLONE}the_audit_is_installed_and_finds_nothing_wrong",
    f'make bench ARGS="{MEASURES}"': f"{_CLONE}make_bench_measures",
    "make bench ARGS=audit": f"{_CLONE}make_bench_audits_a_large_log",
    "python -m bench figures": f"{_HERE}the_figures_are_those_of_the_results",
    "make docs": f"{_CLONE}make_docs_builds_the_site",
}
"""Every command of README.md, and the test that runs it."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("readme")) as service:
        yield service


def test_every_command_is_run_by_a_test() -> None:
    assert {*commands(README), *named_commands(README)} == set(RUN_BY)
    assert [name for name in RUN_BY.values() if not is_test(name)] == []


def test_the_figures_are_those_of_the_results() -> None:
    assert figures.main(["--check"]) == 0, "run: python -m bench figures"


@pytest.mark.slow
def test_make_run_serves_and_says_where(tmp_path: Path) -> None:
    listen, metrics = free_ports(2)
    flags = f"--listen 127.0.0.1:{listen} --metrics 127.0.0.1:{metrics} --data-dir {tmp_path / 'data'}"
    output = tmp_path / "output"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GROUPKEEPER_")}
    with output.open("wb") as stream:
        running = subprocess.Popen(
            ["make", "run", f"ARGS={flags}"],
            cwd=ROOT,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    try:
        wait_until(
            lambda: (
                f'"event":"serving","kafka":"127.0.0.1:{listen}"' in output.read_text()
                or running.poll() is not None
            ),
            120.0,
            what=lambda: f"make run to serve:\n{output.read_text()}",
        )
        os.killpg(running.pid, signal.SIGINT)
        running.wait(120)  # what make itself exits with, when it is interrupted, is its own affair
        assert '"event":"stopped"' in output.read_text()
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


@pytest.fixture(scope="module")
def printed(service: Service) -> str:
    """What the code of the README prints, run against the service for the second time."""
    (code,) = blocks(README, "python")
    assert ADDRESS in code
    for _ in range(2):
        ran = subprocess.run(
            [sys.executable, "-c", code.replace(ADDRESS, service.bootstrap)],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    return ran.stdout


def test_the_code_commits_and_the_commands_show_it(service: Service, printed: str) -> None:
    assert "mine: [0, 1, 2," in printed
    assert "committed: 42" in printed
    shown = {
        arguments: subprocess.run(
            [*groupkeeper(), *arguments, "--bootstrap", service.bootstrap],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout
        for arguments in (("groups", "list"), ("groups", "describe", "orders"), tuple(RESET.split()))
    }
    assert "orders" in shown["groups", "list"]
    assert "42" in shown["groups", "describe", "orders"]
    assert shown[tuple(RESET.split())].split()[-4:] == ["work", "0", "42", "7"]


@pytest.mark.kafka
@pytest.mark.slow
def test_the_gateway_serves_the_topics_of_the_cluster(tmp_path: Path) -> None:
    broker = KafkaBroker(tmp_path / "kafka")
    port, metrics = free_ports(2)
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
        finally:
            running.terminate()
            assert running.wait(120) == 0, (tmp_path / "output").read_text()
    finally:
        broker.close()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("printed")
def test_the_audit_finds_nothing_wrong(service: Service, tmp_path: Path) -> None:
    if shutil.which("java") is None:
        skip_or_fail("the audit needs Java 17 or later, and there is none")
    arguments = AUDIT.split()[1:]
    places = {"data": str(service.data_dir), "audit-results": str(tmp_path), ADDRESS: service.bootstrap}
    ran = subprocess.run(
        [*groupkeeper(), *(places.get(word, word) for word in arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (tmp_path / "report.html").exists()


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
    """The headings of a page as links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
