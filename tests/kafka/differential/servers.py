# SPDX-License-Identifier: Apache-2.0
"""The two servers, each once for every set of settings that scenarios are played with."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tests.kafka.broker import KafkaBroker
from tests.kafka.differential.catalogue import ALONE, CLASSIC, ORDINARY, TIGHT
from tests.kafka.differential.play import prepare
from tests.kafka.differential.script import ServerUnderTest
from tests.support.service import Service

_NO_DELAY: Final[Mapping[str, str | int]] = {"group.initial.rebalance.delay.ms": 0}
SETTINGS: Final[Mapping[str, Mapping[str, str | int]]] = {
    ORDINARY: _NO_DELAY,
    ALONE: _NO_DELAY,
    CLASSIC: _NO_DELAY,
    TIGHT: {
        # A script on a busy machine has seen within this time that nobody is answered yet.
        "group.initial.rebalance.delay.ms": 2_000,
        "group.min.session.timeout.ms": 100,
        "group.max.session.timeout.ms": 60_000,
        "group.max.size": 3,
        "offset.metadata.max.bytes": 8,
        "offsets.topic.num.partitions": 4,
        "auto.create.topics.enable": "false",
        "num.partitions": 3,
    },
}
"""Settings that both servers know under the same names."""
FORMATTING: Final[Mapping[str, Sequence[str]]] = {CLASSIC: ("--feature", "group.version=0")}
"""Arguments for the formatting of Kafka's data directory."""

KAFKA_GRACE_S: Final = 0.15
GROUPKEEPER_GRACE_S: Final = 0.0
"""None: it has one event loop, so what a request brings about is there once later requests were answered."""


@contextmanager
def kafka_servers(
    work: Path, wanted: Collection[str], ordinary: KafkaBroker | None = None
) -> Iterator[dict[str, ServerUnderTest]]:
    """Brokers with the wanted settings; one that runs already can serve as the ordinary one."""
    with ExitStack() as stack:
        brokers = {}
        for name in wanted:
            if name == ORDINARY and ordinary is not None:
                brokers[name] = ordinary
                continue
            brokers[name] = KafkaBroker(work / name, SETTINGS[name], formatting=FORMATTING.get(name, ()))
            stack.callback(brokers[name].close)
            brokers[name].start()
        yield _prepared({name: broker.bootstrap for name, broker in brokers.items()}, KAFKA_GRACE_S)


@contextmanager
def groupkeeper_servers(work: Path, wanted: Collection[str]) -> Iterator[dict[str, ServerUnderTest]]:
    """Groupkeepers with the wanted settings."""
    with ExitStack() as stack:
        services = {}
        for name in wanted:
            services[name] = Service(work / name, SETTINGS[name])
            stack.callback(services[name].close)
            services[name].start()
        yield _prepared({name: service.bootstrap for name, service in services.items()}, GROUPKEEPER_GRACE_S)


def _prepared(bootstraps: Mapping[str, str], grace_s: float) -> dict[str, ServerUnderTest]:
    servers = {name: ServerUnderTest(bootstrap, grace_s=grace_s) for name, bootstrap in bootstraps.items()}
    for server in servers.values():
        prepare(server)
    return servers
