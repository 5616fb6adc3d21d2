# SPDX-License-Identifier: Apache-2.0
"""Running the command line in this process, and clusters to run it on."""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition
from typer.testing import CliRunner

from coordinator.cli.main import app
from coordinator.config import Settings
from protocol.apis import ApiKey
from tests.cli.answers import coordinator, metadata
from tests.cli.fake import FakeNode
from tests.support.raw import create_topic
from tests.support.service import serving
from tests.support.waiting import wait_until

PARTITIONS = 4


class Outcome(NamedTuple):
    """What a command printed and how it ended."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        assert self.exit_code == 0, self.stderr
        return json.loads(self.stdout)

    @property
    def rows(self) -> list[list[str]]:
        """The lines of the tables, in cells."""
        assert self.exit_code == 0, self.stderr
        return [
            [cell.strip() for cell in line.split("   ") if cell.strip()] for line in self.stdout.splitlines()
        ]


Command = Callable[..., Outcome]


@pytest.fixture
def groupkeeper() -> Command:
    """Run `groupkeeper` with arguments; it sees no settings of the machine's environment."""
    return runner()


def runner(serve: Callable[[Settings], int] | None = None) -> Command:
    """Runs `groupkeeper` with arguments; `serve` takes the place of a node."""

    def run(*arguments: str, **environment: str) -> Outcome:
        result = CliRunner().invoke(app, arguments, env=environment, prog_name="groupkeeper", obj=serve)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


@contextmanager
def consuming(bootstrap: str, group: str, topic: str, **settings: str) -> Iterator[Consumer]:
    """A consumer that is alone in its group, and has all partitions of the topic."""
    strategy = {} if "group.protocol" in settings else {"partition.assignment.strategy": "range"}
    given = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "client.id": "reader",
        "enable.auto.commit": False,
    }
    consumer = Consumer({**given, **strategy, **settings})
    consumer.subscribe([topic])
    try:
        wait_until(
            lambda: (consumer.poll(0.05), len(consumer.assignment()) == PARTITIONS)[1],
            60.0,
            what=f"{group} to have its partitions",
        )
        yield consumer
    finally:
        consumer.close()


@pytest.fixture(scope="module", params=["groupkeeper", pytest.param("kafka", marks=pytest.mark.kafka)])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of a cluster that runs for this file's tests."""
    if request.param == "kafka":
        yield request.getfixturevalue("kafka_broker").bootstrap
        return
    with serving(tmp_path_factory.mktemp("service"), {"group.initial.rebalance.delay.ms": 0}) as service:
        yield service.bootstrap


@pytest.fixture
def topic(bootstrap: str) -> str:
    name = f"topic-{uuid.uuid4().hex[:12]}"
    create_topic(bootstrap, name, PARTITIONS)
    return name


@pytest.fixture
def stable_group(bootstrap: str, topic: str) -> Iterator[str]:
    """A group with one member that has every partition and has committed two of them."""
    group = f"group-{uuid.uuid4().hex[:12]}"
    with consuming(bootstrap, group, topic, **{"group.instance.id": "instance-1"}) as consumer:
        offsets = [TopicPartition(topic, 0, 10), TopicPartition(topic, 3, 13)]
        consumer.commit(offsets=offsets, asynchronous=False)
        yield group


@pytest.fixture
def node() -> Iterator[FakeNode]:
    """A node that is a cluster by itself and the coordinator of every group."""
    with FakeNode() as fake:
        fake.answers[ApiKey.FIND_COORDINATOR] = lambda *_: coordinator(fake)
        fake.answers[ApiKey.METADATA] = lambda *_: metadata(fake, topics={"__consumer_offsets": 0})
        yield fake
