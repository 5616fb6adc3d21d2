# SPDX-License-Identifier: Apache-2.0
"""kafka-python's integration tests: in the source distribution of the version that is installed."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from tests.peers.differing import BY_CHANCE, explained
from tests.peers.fetching import sdist
from tests.peers.logins import WITH_RIGHTS
from tests.peers.outcome import Outcome, Report, Verdict
from tests.peers.pytest_suite import Suite, by_function, run_suite
from tests.support.target import keeps_records, running_target

NAME = "kafka-python"
# As in its own servers/resources/default/kafka.properties.
SETTINGS = {
    "node.id": 0,
    "num.partitions": 4,
    "group.min.session.timeout.ms": 1_000,
    "group.initial.rebalance.delay.ms": 0,
}
BROKER_VERSION = "4.3"

DATA = "needs produced data"
OWN_BROKER = "starts a broker of its own"
NOT_SERVED = "asks for what no client of groups needs and Groupkeeper does not serve"
_SUITE = Suite(
    files=["test/integration"],
    names={
        "test_create_describe_delete_acls": NOT_SERVED,
        "test_elect_leaders": NOT_SERVED,
        "test_describe_log_dirs": NOT_SERVED,
        "test_alter_replica_log_dirs": NOT_SERVED,
        "test_describe_metadata_quorum": NOT_SERVED,
        "test_alter_partition_reassignments": NOT_SERVED,
        "test_list_partition_reassignments": NOT_SERVED,
        "test_describe_topic_partitions": NOT_SERVED,
        "test_describe_topic_partitions_pagination": NOT_SERVED,
        "test_list_config_resources": NOT_SERVED,
        "test_kafka_version_infer": "tells a Kafka 4.3 by DescribeLogDirs v5: infers 4.2",
        "test_describe_configs_broker_resource_returns_configs": (
            "wants a broker's setting advertised.listeners: Groupkeeper tells of its own settings"
        ),
    },
    words={
        "send_messages": DATA,
        "producer": DATA,
        "kafka_producer_factory": DATA,
        "sasl_kafka": OWN_BROKER,
        "ssl_kafka": OWN_BROKER,
    },
    overlay={
        "test/service.py": Path(__file__).with_name("kafka_python_service.py"),
        # Without it, Python's own package `test` is found in its place.
        "test/__init__.py": Path("/dev/null"),
    },
    options=["-o", "log_level=WARNING"],
)


def run(work: Path) -> Report:
    """Run the tests against a server under `work`. Raises UnavailableError."""
    installed = version(NAME)
    root = sdist(NAME, installed)
    with running_target(work / "server", SETTINGS, WITH_RIGHTS) as server:
        env = {
            "KAFKA_URI": f"kafka://{server.bootstrap}",
            "KAFKA_VERSION": BROKER_VERSION,
            "KAFKA_ROOT": str(work),
        }
        outcomes = run_suite(_suite(), root, work, env)
        if again := unlucky(outcomes):
            places = [f"test/integration/{name.replace('::', '.py::', 1)}" for name in again]
            outcomes = merged(outcomes, run_suite(replace(_suite(), files=places), root, work, env))
        return Report(NAME, installed, outcomes)


def unlucky(outcomes: Sequence[Outcome]) -> list[str]:
    """Which tests have failed and may have done so by chance."""
    return [each.name for each in outcomes if each.verdict is Verdict.FAILED and each.name in BY_CHANCE]


def merged(first: Sequence[Outcome], second: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes of all tests, of which some ran a second time; those say how they failed before."""
    later = {each.name: each for each in second}
    return [
        replace(later[each.name], reason=f"{later[each.name].reason}\nbefore: {each.reason}".lstrip())
        if each.name in later
        else each
        for each in first
    ]


def _suite() -> Suite:
    """All of it where there are records, but for what starts brokers of its own."""
    if not keeps_records():
        return _SUITE
    own = {word: reason for word, reason in _SUITE.words.items() if reason == OWN_BROKER}
    return replace(_SUITE, names=by_function(explained(NAME)), words=own)
