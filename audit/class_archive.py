# SPDX-License-Identifier: Apache-2.0
"""An archive of Spark's classes in Java's memory format, so that they are mapped and not loaded one by one.

`python -m audit.class_archive` makes the archive (`make install-audit` does, too): it audits a small log and lets Java
dump the classes that it loaded for that, some 160 MB. Every audit of this installation uses the archive if it exists
(`audit.session`); if it does not fit any more (another Java, other jars), Java ignores it.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from audit.options import AuditOptions
from audit.run.audit import audit
from audit.session import CLASS_ARCHIVE, LOCAL_JAVA, QUIET, get_or_create_session
from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from storage.disk.layout import OFFSETS_TOPIC, partition_dir, segment_name
from storage.format.batch import BatchBuilder
from storage.format.records import GroupMetadataRecord, OffsetAndMetadata, OffsetCommitRecord

WRITING_S: Final = 600
"""The seconds within which Java has to write the archive; it needs few, but far more on a busy machine."""


def dump_class_data_archive(path: Path) -> None:
    """Make the archive. Raises RuntimeError if Java did not write it, AuditError, and OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    options = f"{LOCAL_JAVA} -XX:ArchiveClassesAtExit={new} {QUIET}"
    spark = get_or_create_session("local[2]", settings={"spark.driver.extraJavaOptions": options})
    gateway = spark.sparkContext._gateway  # there is no other way to wait for Java
    assert gateway is not None, "Spark has started"
    with tempfile.TemporaryDirectory(prefix="groupkeeper-audit-") as work:
        log_dir, out = Path(work, "log"), Path(work, "out")
        now_ms = int(time.time() * 1000)
        _write_log(log_dir, now_ms)
        audit(spark, AuditOptions(log_dirs=(str(log_dir),), out=str(out), as_of_ms=now_ms, num_partitions=50))
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(WRITING_S)
    if not new.exists():
        raise RuntimeError(f"Java did not write {new}")
    os.replace(new, path)  # noqa: PTH105 - the name states that it replaces


def _write_log(log_dir: Path, now_ms: int) -> None:
    builder = BatchBuilder()
    value = OffsetAndMetadata(Offset(1), -1, "", now_ms)
    builder.append_in_one_batch(
        [OffsetCommitRecord(GroupId("group"), "topic", 0, value), GroupMetadataRecord(GroupId("group"), None)]
    )
    place = partition_dir(log_dir, OFFSETS_TOPIC, Partition(0))
    place.mkdir(parents=True)
    (place / segment_name(Offset(0))).write_bytes(b"".join(builder.build(Offset(0), LeaderEpoch(0), now_ms)))


if __name__ == "__main__":
    dump_class_data_archive(CLASS_ARCHIVE)
    sys.stdout.write(f"{CLASS_ARCHIVE}\n")
