# SPDX-License-Identifier: Apache-2.0
"""What README.md shows is what there is: its figures, its gateway, and the links of all pages."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from bench.ports import BROKERS, free_port_run, free_ports
from tests.documented import ADDRESS
from tests.kafka.broker import KafkaBroker
from tests.support.documented import Documented
from tests.support.pages import blocks

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_figures_are_those_of_the_results(documented: Documented) -> None:
    (command,) = documented.commands
    documented.run(command, {"figures": "figures --check"})


@pytest.mark.kafka
@pytest.mark.slow
def test_the_gateway_serves_the_topics_of_the_cluster(documented: Documented, tmp_path: Path) -> None:
    serve, describe, give_back = documented.commands
    broker = KafkaBroker(tmp_path / "kafka")
    port, metrics = free_port_run(1), free_port_run(2)  # of a node's metrics, and of a gateway's
    (of_broker,) = free_ports(1, BROKERS)
    ours = {"127.0.0.1:9093": f"127.0.0.1:{port}"}
    variables = {
        "GROUPKEEPER_METRICS_LISTEN": f"127.0.0.1:{metrics}",
        "GROUPKEEPER_GATEWAY_PORT_BASE": str(of_broker - 1),
    }
    try:
        broker.start()
        AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=120)
        gateway = documented.start(serve, {**ours, ADDRESS: broker.bootstrap}, variables=variables)
        try:
            admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
            brokers = admin.list_topics(timeout=120).brokers.values()
            assert {of_broker, port} == {each.port for each in brokers}
            (program,) = blocks(README, "python")
            here = [sys.executable, "-c", program.replace(ADDRESS, f"127.0.0.1:{port}")]
            ran = subprocess.run(here, capture_output=True, text=True, check=True, timeout=120)
            assert "committed: 42" in ran.stdout
            assert "42" in documented.run(describe, ours).stdout
            assert "would be given back" in documented.run(give_back).stdout
            assert (
                "work" in AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=120).topics
            )
        finally:
            assert gateway.terminate() == 0, gateway.log_tail()
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
