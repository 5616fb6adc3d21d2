# SPDX-License-Identifier: Apache-2.0
"""One Spark for all tests of a run: it takes seconds to start."""

import os
import shutil
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from audit.session import get_or_create_session
from tests.support.missing import skip_or_fail


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that is interrupted takes the connection to Java with it: give those with Spark time on a slow machine."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(400))


@pytest.fixture(scope="session")
def java() -> None:
    """Skips where there is no Java, and fails there in CI."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        skip_or_fail("Spark needs Java 17 or later, and there is none")


@pytest.fixture(scope="session")
def spark(java: None) -> Iterator[SparkSession]:
    """A session on two threads."""
    session = get_or_create_session(
        "local[2]",
        settings={"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"},
    )
    yield session
    session.stop()
