# SPDX-License-Identifier: Apache-2.0
"""The zips for a cluster hold all that an executor imports."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

from audit.package import CODE_ZIP, write_package
from tests.storage.strategies import batch

READ = """
import sys
sys.path[:0] = sys.argv[1:3]
import audit.fold, crc32c, cramjam, msgspec
from audit.source.plan import plan
from audit.source.read import read_part
for module in (audit.fold, crc32c, cramjam, msgspec):
    assert module.__file__.startswith(tuple(sys.argv[1:3])), module.__file__
print([row for task in plan([sys.argv[3]]) for part in task for rows in read_part(part, ["offset"])
       for row in rows.column("offset").to_pylist()])
"""


def test_an_executor_reads_a_log_with_what_is_in_them(tmp_path: Path) -> None:
    code, packed = write_package(tmp_path / "dist")
    assert code.name == CODE_ZIP
    libraries = tmp_path / "libraries"
    with ZipFile(packed) as content:
        content.extractall(libraries)
    partition = tmp_path / "log" / "__consumer_offsets-0"
    partition.mkdir(parents=True)
    (partition / f"{0:020d}.log").write_bytes(batch(1, 0, 3))
    command = [sys.executable, "-I", "-c", READ, str(code), str(libraries), str(tmp_path / "log")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[0, 1, 2]\n"), done.stderr
