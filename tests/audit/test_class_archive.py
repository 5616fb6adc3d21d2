# SPDX-License-Identifier: Apache-2.0
"""Java does without an archive that does not fit. That it takes classes from one that fits: tests/packaging."""

import subprocess
from pathlib import Path

import pytest

from audit.session import LOCAL_JAVA, QUIET


@pytest.mark.usefixtures("java")
def test_an_archive_that_does_not_fit_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "classes.jsa"
    other.write_bytes(b"of another Java" * 1_000)
    options = [*LOCAL_JAVA.split(), f"-XX:SharedArchiveFile={other}", *QUIET.split()]
    done = subprocess.run(["java", *options, "-version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
