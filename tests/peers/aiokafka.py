# SPDX-License-Identifier: Apache-2.0
"""aiokafka's tests of the coordinator, the consumer, the client and the admin client.

No package registry has them: its source distributions leave `tests/` out. They run where AIOKAFKA_SOURCE names a
checkout of its repository, of the version that is installed.
"""

import os
import shutil
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from tests.peers.differing import explained
from tests.peers.fetching import NotPublishedError, UnavailableError
from tests.peers.logins import logging_in
from tests.peers.outcome import Report
from tests.peers.pytest_suite import Suite, by_function, run_suite
from tests.support.target import keeps_records, running_target

NAME = "aiokafka"
SOURCE = "AIOKAFKA_SOURCE"
# As its container has it; its tests wait for topics with two partitions, and one asks node 0.
SETTINGS = {"node.id": 0, "num.partitions": 2, "group.initial.rebalance.delay.ms": 3_000}

DATA = "needs produced data"
_TESTS = ("admin", "client", "conn", "consumer", "coordinator", "pep492")
_TESTS_WITH_RECORDS = (
    *_TESTS,
    "producer",
    "message_accumulator",
    "transactional_producer",
    "transactional_consumer",
    "sender",
    "sasl",
)
TLS = "needs TLS"
_SUITE = Suite(
    files=[f"tests/test_{name}.py" for name in _TESTS],
    names={
        "test_alter_configs": "alters settings of topics, which is not served",
        "test_coordinator__heartbeat_routine": "counts a mock's calls in tenths of a second: asks no server",
        **dict.fromkeys(
            [
                "test_compress_decompress_gzip",
                "test_compress_decompress_snappy",
                "test_compress_decompress_lz4",
                "test_compress_decompress_zstd",
            ],
            DATA,
        ),
    },
    words={
        "send_messages(": DATA,
        "AIOKafkaProducer(": DATA,
        "ProduceRequest(": DATA,
        "create_ssl_context(": TLS,
    },
    overlay={"tests/conftest.py": Path(__file__).with_name("aiokafka_conftest.py")},
    options=["-o", "asyncio_default_fixture_loop_scope=function"],
)


def run(work: Path) -> Report:
    """Run the tests against a server under `work`. Raises UnavailableError and NotPublishedError."""
    installed = version(NAME)
    root = work / "suite"
    # Only the tests: the package beside them is not compiled, and it is the installed one that they are to try.
    tests = _tests()
    shutil.copytree(tests, root / "tests")
    shutil.copy(tests.parent / "pyproject.toml", root)
    with running_target(work / "server", SETTINGS) as server, logging_in(work / "logins") as logins:
        env = {"PEERS_ADDRESS": server.bootstrap}
        if logins is not None:
            env |= {"PEERS_SASL_ADDRESS": logins.bootstrap, "PEERS_SASL_CLUSTER": logins.cluster}
        return Report(NAME, installed, run_suite(_suite(), root, work, env))


def _suite() -> Suite:
    """All of it where there are records, but for what needs TLS."""
    if not keeps_records():
        return _SUITE
    mocked = "test_coordinator__heartbeat_routine"
    return replace(
        _SUITE,
        files=[f"tests/test_{name}.py" for name in _TESTS_WITH_RECORDS],
        names={mocked: _SUITE.names[mocked], **by_function(explained(NAME))},
        words={word: reason for word, reason in _SUITE.words.items() if reason == TLS},
    )


def _tests() -> Path:
    source = os.environ.get(SOURCE)
    if not source:
        raise NotPublishedError(
            f"no registry has its tests: {SOURCE} may name a checkout of the version installed"
        )
    tests = Path(source) / "tests"
    if not tests.is_dir():
        raise UnavailableError(f"{SOURCE}={source} holds no tests")
    return tests
