# SPDX-License-Identifier: Apache-2.0
"""The Spark session of an audit."""

import os
import sys
from pathlib import Path
from typing import Final

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from audit.errors import AuditError

MASTER_DEFAULT = "local[*]"

_SETTINGS = {
    # The audit's tables are small once the log has been read: many tasks would cost more than the tables.
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.enabled": "false",  # it would run parts of a query while that is planned
    # All large tables are spread alike, by partition of the log, so that joins find both sides in one task.
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # Few rows leave the reading tasks: to compile code for them takes longer (see audit.run.reading).
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Whole files become rows if only Spark can read them: one at a time.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(1 << 20),
}
CLASS_ARCHIVE: Final = Path(sys.prefix, "share", "groupkeeper", f"spark-{pyspark.__version__}.jsa")
"""The path at which `audit.class_archive` stores Spark's classes for this installation."""
LOCAL_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms512m -Xmn256m"
"""Java's options for a local master: it mostly starts up, as Python does the work, so a quick start halves its time.

The memory is what Java uses anyway; without the options it takes a dozen collections to grow to that.
"""
QUIET: Final = "-Xlog:disable -Xlog:all=error:stderr"
"""Java's options without which it prints to standard output that an archive does not fit."""
_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_LOG_SETTINGS: Final = Path(__file__).with_name("log4j2.properties")
_ONE_PROCESS = {
    # With other masters the packages may come with --py-files, which only the workers get.
    "spark.python.daemon.module": "audit.run.spark_worker_daemon",
    # Each range uses the memory of the range before: to free it in between costs a tenth of the work.
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(1 << 30),
}


def get_or_create_session(
    master: str | None = None, *, settings: dict[str, str] | None = None
) -> SparkSession:
    """Return the session of this process, started if there is none yet.

    `master` is Spark's own option (default: all cores of this machine, or, in spark-submit, the master given there).
    Raises AuditError if Spark cannot start.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    _share_packages()
    builder = SparkSession.builder.appName("groupkeeper-audit")
    chosen = master or (None if "SPARK_ENV_LOADED" in os.environ else MASTER_DEFAULT)
    if chosen is not None:
        builder = builder.master(chosen)
        if chosen.startswith("local"):
            builder = builder.config(map={**_LOCAL, "spark.driver.extraJavaOptions": _java_options()})
            if not chosen.startswith("local-cluster"):
                builder = builder.config(map=dict(_ONE_PROCESS))
    builder = builder.config(map={**_SETTINGS, **(settings or {})})
    try:
        return builder.getOrCreate()
    except (PySparkException, OSError, RuntimeError) as error:
        raise AuditError(f"Spark does not start: {error}") from error


def _java_options() -> str:
    options = LOCAL_JAVA
    if " " not in str(_LOG_SETTINGS):
        options += f" -Dlog4j2.configurationFile={_LOG_SETTINGS}"
    if CLASS_ARCHIVE.exists() and " " not in str(CLASS_ARCHIVE):
        options += f" -XX:SharedArchiveFile={CLASS_ARCHIVE} {QUIET}"
    return options


def _share_packages() -> None:
    """Let Spark's Python workers import what this process imports, wherever it was started."""
    root = str(Path(__file__).resolve().parents[1])
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if root not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([root, *filter(None, known)])
