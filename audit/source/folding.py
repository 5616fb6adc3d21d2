# SPDX-License-Identifier: Apache-2.0
"""Summaries made where the log is read.

Ten million rows cost more on their way into the JVM and back than in reading. So the data source can take a *fold*,
which sees the rows of one range as Arrow batches, in the order of the log, and gives a few rows in their place.
Spark then merges those.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Final

import msgspec
import pyarrow as pa

from audit.errors import AuditError


class Fold(msgspec.Struct, frozen=True):
    """A summary: the columns that it needs of `audit.schema.SCHEMA`, what its rows look like, and the function.

    `run` gets the batches of one range, each of one file, and the text of the option `fold_rules`. Columns of
    strings come with a dictionary.
    """

    columns: Sequence[str]
    schema: pa.Schema
    run: Callable[[Iterator[pa.RecordBatch], str], Iterator[pa.RecordBatch]]


FOLDS: Final = {"summary": "audit.fold:SUMMARY"}
"""By the name that the option `fold` takes: where the Fold is."""


def fold_named(name: str) -> Fold:
    """The fold of this name. Raises AuditError when there is none."""
    if name not in FOLDS:
        raise AuditError(f"fold {name!r} is not known; there are {', '.join(sorted(FOLDS))}")
    module, _, attribute = FOLDS[name].partition(":")
    found: Fold = getattr(import_module(module), attribute)
    return found
