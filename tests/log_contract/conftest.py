# SPDX-License-Identifier: Apache-2.0
"""The implementations of the log port, each held to the same tests."""

from collections.abc import AsyncIterator

import pytest

from tests.log_contract.memory import MemorySubject
from tests.log_contract.subject import Subject

SUBJECTS = {"memory": MemorySubject}


@pytest.fixture(params=SUBJECTS)
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    """One implementation on storage of its own."""
    subject = SUBJECTS[request.param]()
    yield subject
    await subject.log.close()
