# SPDX-License-Identifier: Apache-2.0
"""The implementations of the log port, each held to the same tests."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.log_contract.files import FileSubject, ShareSubject
from tests.log_contract.memory import MemorySubject
from tests.log_contract.subject import Subject

SUBJECTS: dict[str, Callable[[Path], Subject]] = {
    "memory": lambda _path: MemorySubject(),
    "memory that assigns epochs": lambda _path: MemorySubject(assigns_epochs=True),
    "files": FileSubject,
    "shared files": ShareSubject,
}


@pytest.fixture(params=SUBJECTS)
async def subject(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Subject]:
    """One implementation on storage of its own."""
    subject = SUBJECTS[request.param](tmp_path / "data")
    yield subject
    await subject.close()
