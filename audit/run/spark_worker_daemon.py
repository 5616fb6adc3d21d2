# SPDX-License-Identifier: Apache-2.0
"""The daemon from which Spark forks the audit's Python workers (`spark.python.daemon.module`).

Runs Spark's own daemon after importing pyarrow, numpy and pandas, for which each worker would otherwise need a second.
"""

import gc

import numpy  # noqa: F401 - imported for the workers, as is all that follows
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import audit.fold
import audit.source.folding  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # Spark's workers collect after each task, and need not traverse all imported objects
    manager()
