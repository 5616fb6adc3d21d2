# SPDX-License-Identifier: Apache-2.0
"""What holds for all tests: how hard hypothesis tries, and a real Kafka for those that ask for one."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator

import hypothesis
import pytest
import structlog

from coordinator.telemetry import logs  # noqa: F401 - before anything else imports structlog, see its head
from tests.kafka.broker import kafka_broker
from tests.kafka.jars import require_kafka_classpath
from tests.support.idle import IdleLoop
from tests.support.log_lines import LogLines, captured

__all__ = ["kafka_broker"]  # here, so that all tests of a run share one broker

IN_CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")

hypothesis.settings.register_profile("dev", max_examples=30, derandomize=True, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=200, deadline=None, print_blob=True)
hypothesis.settings.register_profile("soak", max_examples=5_000, deadline=None, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if IN_CI else "dev"))


@pytest.hookimpl(trylast=True)  # after they were put in random order
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where processes share the files, those with long tests come first: the last ones then end together."""
    if not hasattr(config, "workerinput"):
        return
    slow = Counter(item.path for item in items if item.get_closest_marker("slow") is not None)
    items.sort(key=lambda item: -slow[item.path])


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip `kafka` tests where Java 17 or Maven is missing, with the reason; fail them if that is in CI."""
    if item.get_closest_marker("kafka") is not None:
        require_kafka_classpath()


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
def lines() -> Iterator[LogLines]:
    """What is logged during the test."""
    with captured() as found:
        yield found
