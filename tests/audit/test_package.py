# SPDX-License-Identifier: Apache-2.0
"""The zips for a cluster hold all that an executor imports."""

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pyspark
import pytest

from audit.spark_package import CODE_ZIP, write_code_and_library_zips
from tests.audit.damaged import flipped_bit
from tests.audit.logs import AS_OF, Log, healthy
from tests.storage.strategies import batch
from tests.support.documented import Documented

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


@pytest.mark.process
def test_an_executor_reads_a_log_with_what_is_in_them(tmp_path: Path) -> None:
    code, packed = write_code_and_library_zips(tmp_path / "dist")
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


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.usefixtures("java")
def test_a_cluster_audits_with_them(documented: Documented, tmp_path: Path) -> None:
    """On two executors that are processes of their own, and their master."""
    (command,) = documented.commands
    write_code_and_library_zips(documented.work / "dist")
    healthy(Log(tmp_path / "log", 3))
    flipped_bit(Log(tmp_path / "log", 4))
    home = (
        tmp_path / "spark"
    )  # its workers put what they get into it, which must not stay in the installed one
    home.mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        (home / path.name).symlink_to(path)
    documented.add_program("spark-submit", home / "bin" / "spark-submit")
    places = {
        "spark://HOST:7077": "local-cluster[2,1,1024] --conf spark.ui.enabled=false",
        "audit/__main__.py": Path(__file__).parents[2] / "audit" / "__main__.py",
        "/mnt/broker/data": tmp_path / "log",
        "/srv/audit": f"{tmp_path / 'out'} --partitions 50 --as-of {AS_OF}",
    }
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    variables = {**python, "SPARK_HOME": str(home), "PYTHONPATH": ""}  # the code is in the zip alone
    documented.run(command, places, status=1, variables=variables)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [finding["check"] for finding in summary["findings"]] == ["batch_crc"]
    assert (summary["partitions"], summary["groups"]) == (2, 2)
    tables = tmp_path / "out" / "tables"
    assert all(
        list(tables.glob(f"{name}/*/*/*.parquet")) for name in ("offsets", "groups", "findings", "runs")
    )
