# SPDX-License-Identifier: Apache-2.0
"""Every program in docs/recipes.md does what the page says."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.installed import groupkeeper
from bench.ports import free_ports
from tests.kafka.broker import KafkaBroker
from tests.support.documented import Documented
from tests.support.service import Service, serving

PAGE = (Path(__file__).parent.parent / "docs" / "recipes.md").read_text(encoding="utf-8")
QUEUE, ELSEWHERE, TESTS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
HERE, CLUSTER = "127.0.0.1:9092", "127.0.0.1:9192"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(tmp_path / "service", settings={"group.initial.rebalance.delay.ms": 0}) as service:
        yield service


def run(code: str, work: Path) -> str:
    """What a program prints that ends by itself and well."""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False, cwd=work
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_queue_is_worked_off_once_and_goes_on_where_it_was(service: Service, tmp_path: Path) -> None:
    code = QUEUE.replace(HERE, service.bootstrap)
    shipped = re.findall(r"shipping item (\d+)", run(code, tmp_path))
    assert sorted(map(int, shipped)) == list(range(1, 101))
    again = run(code.replace("range(1, 101)", "range(1, 104)"), tmp_path)
    assert sorted(re.findall(r"shipping item (\d+)", again)) == ["101", "102", "103"]


@pytest.mark.kafka
@pytest.mark.slow
def test_records_of_a_cluster_are_read_once_by_a_group_that_is_here(
    documented: Documented, service: Service, tmp_path: Path
) -> None:
    broker = KafkaBroker(tmp_path / "kafka")
    try:
        broker.start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("invoices", 3)])["invoices"].result()
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        code = ELSEWHERE.replace(CLUSTER, broker.bootstrap).replace(HERE, service.bootstrap)
        too_early = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
        )
        assert too_early.returncode == 1
        assert "invoices" in too_early.stderr
        (create,) = documented.commands
        documented.run(create, variables={"GROUPKEEPER_BOOTSTRAP": service.bootstrap})
        for first in (0, 20):
            for number in range(first, first + 20):
                producer.produce("invoices", f"invoice {number}")
            producer.flush()
            billed = re.findall(r"billing invoice (\d+)", run(code, tmp_path))
            assert sorted(map(int, billed)) == list(range(first, first + 20))
    finally:
        broker.close()


@pytest.mark.slow
def test_the_fixture_serves_a_test(tmp_path: Path) -> None:
    kafka, metrics = free_ports(2)
    code = TESTS.replace("19092", str(kafka)).replace("19308", str(metrics))
    (tmp_path / "test_it.py").write_text(code)
    command = tmp_path / "bin" / "groupkeeper"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.join(groupkeeper())} "$@"\n')
    command.chmod(0o755)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parent.parent),
            "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        },
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout
