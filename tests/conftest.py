# SPDX-License-Identifier: Apache-2.0
"""What holds for all tests: their tiers, how hard hypothesis tries, and what they get to run: a Kafka, commands."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

import hypothesis
import pytest
import structlog

from coordinator.telemetry import logs  # noqa: F401 - before anything else imports structlog, see its head
from tests.documented import RUN_BY
from tests.kafka.broker import kafka_broker
from tests.kafka.jars import require_kafka_classpath
from tests.support.documented import Documented
from tests.support.idle import IdleLoop
from tests.support.log_lines import LogLines, captured
from tests.tiers import NEEDS, Guard, set_tier
from tests.verdict import NODE_ID

__all__ = ["kafka_broker"]  # here, so that all tests of a run share one broker

hypothesis.settings.register_profile("gate", max_examples=20, derandomize=True, deadline=None)
hypothesis.settings.register_profile("all", max_examples=50, derandomize=True, deadline=None)
hypothesis.settings.register_profile("explore", max_examples=1_000, deadline=None, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))

RANDOM_SEED = 1
"""Of `random` at the beginning of each test; pytest-randomly, which only `make explore` loads, chooses its own."""

GUARD = Guard()
GUARD.install()


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers of the tiers."""
    for need, meaning in NEEDS.items():
        config.addinivalue_line("markers", f"{need}: {meaning}")
    config.addinivalue_line("markers", "quick: needs nothing but its own process; set by tests/tiers.py")
    config.addinivalue_line("markers", "gate: `make test` runs it although it is not quick")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Set the tiers before pytest chooses by them.

    Afterwards, where processes share the files, put those with long tests first: the last ones then end together.
    """
    for item in items:
        set_tier(item)
        item.user_properties.append((NODE_ID, item.nodeid))
    yield
    if hasattr(config, "workerinput"):
        slow = Counter(item.path for item in items if item.get_closest_marker("slow") is not None)
        items.sort(key=lambda item: -slow[item.path])


def _guarded(item: pytest.Item) -> AbstractContextManager[None]:
    return GUARD.guarding() if item.get_closest_marker("quick") is not None else nullcontext()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Guard a quick test; fail a test that ends well without its documented commands."""
    with _guarded(item):
        result = yield
    if commands := _documented_commands(item):
        documented = getattr(item, "funcargs", {}).get("documented")
        assert documented is not None, f"the test is to run {commands}: it needs the fixture `documented`"
        documented.assert_all_ran()
    return result


def _documented_commands(item: pytest.Item) -> Sequence[str]:
    return RUN_BY.get(item.nodeid.partition("[")[0], ())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Guard the end of a quick test's fixtures."""
    with _guarded(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Seed `random`; guard a quick test's fixtures; skip `kafka` tests where Java 17 or Maven is missing."""
    if not item.config.pluginmanager.hasplugin("randomly"):
        random.seed(RANDOM_SEED)
    if item.get_closest_marker("kafka") is not None:
        require_kafka_classpath()
    with _guarded(item):
        return (yield)


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Every test's loop says when it has nothing to do."""
    return {"idle": IdleLoop}


@pytest.fixture(autouse=True)
def _logging_stays_as_it_was() -> Iterator[None]:
    """A logger keeps the configuration that it was first used with, for all tests that follow in the process."""
    yield
    caching = structlog.get_config()["cache_logger_on_first_use"]
    assert not caching, "a test must undo the configuration of logging"


@pytest.fixture
def documented(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Documented:
    """The documented commands that the test has to run, and a place where it can; its path is short, for sockets."""
    return Documented(_documented_commands(request.node), tmp_path_factory.mktemp("doc"))


@pytest.fixture
def lines() -> Iterator[LogLines]:
    """What is logged during the test."""
    with captured() as found:
        yield found
