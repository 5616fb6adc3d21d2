# SPDX-License-Identifier: Apache-2.0
"""Folds rows of the log into small partial summaries, in one pass over each range of a file.

Ten million records are read once and never shuffled. A reading task returns a summary of each thing that
a check needs, by key and range; Spark merges those in the order of the log (`audit.facts.log_facts`).

- `partials` names the kinds of summaries and their columns
- `batch_checks` and `record_checks` check batches and records regardless of their group; `transactions` decides which
  records count
- `offsets` and `groups` fold by key
- `range_fold` runs all of them
"""

from collections.abc import Iterator
from typing import Final

import msgspec
import pyarrow as pa

from audit.fold.fold_parameters import FoldParameters
from audit.fold.partials import PARTIALS
from audit.fold.range_fold import fold_ranges
from audit.fold.rows import NEEDED
from audit.source.folding import FoldDefinition

__all__ = ["PARTIALS", "SUMMARY", "FoldParameters", "fold_ranges"]


def _run(batches: Iterator[pa.RecordBatch], rules: str) -> Iterator[pa.RecordBatch]:
    return fold_ranges(batches, msgspec.json.decode(rules, type=FoldParameters))


SUMMARY: Final = FoldDefinition(NEEDED, PARTIALS, _run)
"""The fold of an audit; its rules are a FoldRules as JSON."""
