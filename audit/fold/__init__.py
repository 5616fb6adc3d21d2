# SPDX-License-Identifier: Apache-2.0
"""From rows of the log to small partial summaries, in one pass over each range of a file.

Ten million records are read once and never shuffled. What leaves the reading task is a summary of each thing that
a check asks about, by key and range; Spark merges those in the order of the log (`audit.facts.facts`).

- `partials` names the kinds of summaries and their columns
- `log` looks at batches and at records without regard to their group, `transactions` at which of them count
- `offsets` and `groups` fold by key
- `run` puts them together
"""

from collections.abc import Iterator
from typing import Final

import msgspec
import pyarrow as pa

from audit.fold.partials import PARTIALS
from audit.fold.rows import NEEDED
from audit.fold.rules import FoldRules
from audit.fold.run import fold
from audit.source.folding import Fold

__all__ = ["PARTIALS", "SUMMARY", "FoldRules", "fold"]


def _run(batches: Iterator[pa.RecordBatch], rules: str) -> Iterator[pa.RecordBatch]:
    return fold(batches, msgspec.json.decode(rules, type=FoldRules))


SUMMARY: Final = Fold(NEEDED, PARTIALS, _run)
"""Its rules are a FoldRules as JSON."""
