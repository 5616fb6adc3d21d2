# SPDX-License-Identifier: Apache-2.0
"""Java takes Spark's classes from the archive, and does without one that does not fit."""

import subprocess
import sys
from pathlib import Path

import pytest

from audit.session import LOCAL_JAVA, QUIET

ROOT = Path(__file__).parents[2]

MAKE = """
import sys
from pathlib import Path
from audit.class_archive import write_archive
write_archive(Path(sys.argv[1]))
"""
USE = """
import sys
from pathlib import Path
from audit import session
session.CLASS_ARCHIVE = Path(sys.argv[1])
session.LOCAL_JAVA += f" -Xlog:class+load:file={sys.argv[2]}"
session.QUIET = "-Xlog:cds=off"  # the other would take the line above back
assert session.spark_session("local[1]").sql("select 6 * 7").collect()[0][0] == 42
"""


def run(code: str, *arguments: Path) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("java")
def test_an_audits_classes_come_out_of_the_archive(tmp_path: Path) -> None:
    archive, loaded = tmp_path / "archives" / "classes.jsa", tmp_path / "loaded"
    run(MAKE, archive)
    assert archive.stat().st_size > 50 << 20
    assert sorted(path.name for path in archive.parent.iterdir()) == ["classes.jsa"]
    run(USE, archive, loaded)
    lines = loaded.read_text().splitlines()
    out_of_it = [line for line in lines if "org.apache.spark" in line and "shared objects file (top)" in line]
    assert len(out_of_it) > 1_000


@pytest.mark.usefixtures("java")
def test_an_archive_that_does_not_fit_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "classes.jsa"
    other.write_bytes(b"of another Java" * 1_000)
    options = [*LOCAL_JAVA.split(), f"-XX:SharedArchiveFile={other}", *QUIET.split()]
    done = subprocess.run(["java", *options, "-version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
