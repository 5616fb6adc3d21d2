# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: what is under way is answered, nothing new is taken, and whole segments are left, without a journal."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from storage.format.batch import iter_batches
from tests.net import requests
from tests.net.process import Peer
from tests.support.raw import commit_offsets, create_topic, fetch_offsets
from tests.support.service import Service, serving
from tests.support.waiting import wait_until

PARTITIONS = 5
DELAY_MS = 60_000


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    settings: dict[str, str | int] = {
        "offsets.topic.num.partitions": PARTITIONS,
        "group.initial.rebalance.delay.ms": DELAY_MS,
        "shutdown.timeout.ms": 2_000,
    }
    service = Service(tmp_path, settings)
    service.start()
    create_topic(service.bootstrap, requests.TOPIC, 100)
    yield service
    service.close()


def left_behind(service: Service) -> list[int]:
    """Check what a stopped service has left; returns how many records each partition holds."""
    data = service.data_dir
    assert not (data / "journal").exists()
    assert (data / ".kafka_cleanshutdown").exists()
    counts = []
    for partition in range(PARTITIONS):
        records = 0
        for segment in sorted((data / f"__consumer_offsets-{partition}").glob("*.log")):
            content = segment.read_bytes()
            batches = list(iter_batches(content, check=True))
            assert sum(len(batch.data) for batch in batches) == len(content), (
                f"{segment} ends in half a batch"
            )
            records += sum(batch.count for batch in batches)
        counts.append(records)
    return counts


def accepts(service: Service) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", service.port)) == 0


def test_an_idle_service_stops_and_leaves_nothing_to_recover(service: Service) -> None:
    for number in range(20):
        commit_offsets(service.bootstrap, f"group-{number}", requests.TOPIC, {0: number, 1: number})
    service.terminate()
    assert sum(left_behind(service)) == 40
    service.start()
    for number in range(20):
        expected = {(requests.TOPIC, 0): number, (requests.TOPIC, 1): number}
        assert fetch_offsets(service.bootstrap, f"group-{number}") == expected
    assert "recovery cut an incomplete write" not in service.log_text()


def test_requests_under_way_are_answered_and_those_that_wait_in_a_group_are_sent_on(service: Service) -> None:
    with Peer(service) as joining, Peer(service) as committing:
        joining.send(requests.join("waits", version=3), requests.api_versions(2))
        for number in range(1, 501):
            committing.send(requests.commit(f"group-{number % 50}", {number % 100: number}, number))
        committing.receive()
        service.terminate()
        joined = requests.answer(ApiKey.JOIN_GROUP, 3, joining.receive())
        assert joined.error_code == ErrorCode.NOT_COORDINATOR
        assert joining.receive()[:4] == b"\0\0\0\2", "what stood behind the join"
        acknowledged = 1
        answered = 1
        try:
            while True:
                frame = committing.receive()
                answered += 1
                assert int.from_bytes(frame[:4], "big") == answered
                (topic,) = requests.answer(ApiKey.OFFSET_COMMIT, 8, frame).topics
                error = topic.partitions[0].error_code
                assert error in (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR)
                acknowledged += error == ErrorCode.NONE
        except ConnectionError:
            pass
    assert sum(left_behind(service)) == acknowledged


def test_a_service_that_stops_takes_no_new_connections(service: Service) -> None:
    """It is kept from ending by a client that does not read its answers, for shutdown.timeout.ms at most."""
    with Peer(service) as deaf:
        deaf.shrink_receive_buffer()
        commit_offsets(service.bootstrap, "big", requests.TOPIC, dict.fromkeys(range(100), 1))
        asked = requests.fetch_offsets("big") * 500_000
        assert deaf.send_what_is_taken(asked, 0.3) < len(asked), "nothing that it asked waits in the service"
        os.kill(service.pid, signal.SIGTERM)
        wait_until(lambda: not accepts(service), what="the listener to close")
        service.terminate()
    left_behind(service)


def test_a_second_signal_changes_nothing(service: Service) -> None:
    commit_offsets(service.bootstrap, "g", requests.TOPIC, {0: 1})
    os.kill(service.pid, signal.SIGTERM)
    os.kill(service.pid, signal.SIGINT)
    service.terminate()
    assert sum(left_behind(service)) == 1


@pytest.mark.process
def test_a_signal_at_the_very_end_changes_nothing_either(tmp_path: Path) -> None:
    """The event loop and its handlers are gone by then."""
    code = (
        "import atexit, os, signal, sys\n"
        "from coordinator import single_node\n"
        "from coordinator.config import Address, Settings\n"
        "again = lambda *_: [os.kill(os.getpid(), n) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]\n"
        "atexit.register(again)\n"
        "settings = Settings(data_dir=app.Path(sys.argv[1]), listen=Address('127.0.0.1', 0), metrics_listen=None)\n"
        "sys.exit(single_node.serve(settings, again))"
    ).replace("app.Path", "__import__('pathlib').Path")
    done = subprocess.run(  # noqa: PLW1510 - its status is what this is about
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, "stopped" in done.stdout + done.stderr) == (0, True), done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_sigint_and_sighup_stop_as_well(service: Service, number: signal.Signals) -> None:
    commit_offsets(service.bootstrap, "g", requests.TOPIC, {0: 1})
    os.kill(service.pid, number)
    service.terminate()
    assert sum(left_behind(service)) == 1


@pytest.mark.process
@pytest.mark.parametrize("mode", ["interval", "os"])
def test_modes_that_do_not_sync_are_whole_after_a_stop(tmp_path: Path, mode: str) -> None:
    with serving(tmp_path, {"offsets.topic.num.partitions": PARTITIONS, "log.flush": mode}) as service:
        create_topic(service.bootstrap, requests.TOPIC, 100)
        commit_offsets(service.bootstrap, "g", requests.TOPIC, dict.fromkeys(range(100), 5))
        service.terminate()
        assert sum(left_behind(service)) == 100


@pytest.mark.process
def test_a_stop_while_it_starts(tmp_path: Path) -> None:
    service = Service(tmp_path, {"offsets.topic.num.partitions": PARTITIONS})
    try:
        service.launch()
        wait_until(lambda: accepts(service), what="the listener")
        service.terminate()
        left_behind(service)
    finally:
        service.close()
