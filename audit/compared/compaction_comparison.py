# SPDX-License-Identifier: Apache-2.0
"""Compares the state in the log with the state that is left of it once it is compacted.

A copy of each partition is folded as the log itself is, compacted by storage's own cleaner, and folded again; Spark
merges both and compares. One task does this for one partition after the other, so the disk needs room for the largest
only: twice, as both the copy and its compacted form exist at a time.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from audit.compared import QUOTED_CHARS_MAX
from audit.errors import AuditError
from audit.facts.fact_tables import build_fold_parameters, summaries_of_kind
from audit.facts.log_facts import Facts
from audit.facts.state import (
    GROUP_KEY,
    KEY,
    NEWEST_GROUP,
    NEWEST_OFFSET,
    apply_transaction_markers,
    merge_groups,
    merge_offsets,
)
from audit.fold import PARTIALS, SUMMARY
from audit.fold.partials import make_partial_batch
from audit.schema import DIFFERENCES, arrow_schema, local_table
from audit.source.compacted_copy import Clean, VanishedLog, compact_log_copy, write_partition_log_copy
from audit.source.plan import Range, plan
from audit.source.read import read_part
from storage.cleaner.partition_cleaning import OffsetMapTooSmall, write_cleaned_segments
from storage.cleaner.plan import CleanerSettings
from storage.disk.layout import OFFSETS_TOPIC
from storage.errors import CorruptBatch, CorruptLog, StorageError

_FAILED: Final = "failed"
_STATE: Final = ("offset", "group", "transaction")
"""The kinds of partial summaries from which a state is merged."""
_PLACE: Final = ("file", "last_position")
_SHOWN_LENGTH: Final = 500


def find_differences_after_compaction(facts: Facts, clean: Clean = write_cleaned_segments) -> DataFrame:
    """Return the differences between a copy of each local log and the same copy once compacted.

    Rows have DIFFERENCES. A partition that is left out because it is damaged has a row of kind `compacted` as well, and
    one whose files went away has a row of kind `meanwhile`. Raises AuditError if a log cannot be compacted.
    """
    rows = _both_states(facts, clean).localCheckpoint(eager=False)
    kinds, left_out = [], []
    for row in summaries_of_kind(rows, "sighting").collect():
        if row["check"] == _FAILED:
            raise AuditError(f"partition {row['partition']} could not be compacted: {row['detail']}")
        kinds.append((row["check"], row["partition"], row["file"], row["at_position"], row["detail"]))
        left_out.append(row["partition"])
    whole = rows.where(~rows["partition"].isin(left_out)) if left_out else rows
    differing = _compared(facts, whole)
    return differing.unionByName(local_table(facts.spark, DIFFERENCES, kinds)).localCheckpoint(eager=False)


# --- in the task ---


class _CompareTask(msgspec.Struct, frozen=True):
    """The work on each log, and its directory; `rules` are those of the fold, as JSON."""

    work: str
    now_ms: int
    settings: CleanerSettings
    rules: str
    clean: Clean

    def run(self, log: Sequence[Range]) -> Iterator[tuple[bool, pa.RecordBatch]]:
        """Yield partial summaries of a partition, each with whether it was compacted; or a sighting if it cannot be."""
        partition, audited = log[0].partition, log[0].directory
        try:
            yield from self._both(log)
        except (CorruptLog, CorruptBatch) as error:
            file = str(Path(audited, Path(error.path).name)) if isinstance(error, CorruptLog) else audited
            reason = f"partition {partition} is damaged, and so was not compacted: {error.reason}"
            yield False, _sighting(partition, file, "compacted", reason, error.position)
        except VanishedLog as error:
            yield False, _sighting(partition, audited, "meanwhile", str(error))
        except (StorageError, OffsetMapTooSmall, OSError) as error:
            yield False, _sighting(partition, audited, _FAILED, str(error))

    def _both(self, log: Sequence[Range]) -> Iterator[tuple[bool, pa.RecordBatch]]:
        with tempfile.TemporaryDirectory(prefix="groupkeeper-audit-", dir=self.work) as scratch:
            directory = Path(scratch, f"{OFFSETS_TOPIC}-{log[0].partition}")
            directory.mkdir()
            copy = write_partition_log_copy(log, directory)
            if copy is not None:
                yield from ((False, part) for part in _folded(directory, log[0].directory, self.rules))
                compact_log_copy(copy, self.now_ms, self.settings, self.clean)
                yield from ((True, part) for part in _folded(directory, log[0].directory, self.rules))


def _both_states(facts: Facts, clean: Clean) -> DataFrame:
    """Return partial summaries of every log, `compacted` and not, and sightings of logs that could not be compacted."""
    options = facts.options
    assert options.compacted is not None
    settings = CleanerSettings(delete_retention_ms=options.limits.delete_retention_ms)
    rules = msgspec.json.encode(build_fold_parameters(options, facts.inventory)).decode()
    task = _CompareTask(options.compacted, options.as_of_ms, settings, rules, clean)
    logs = _by_partition(options.log_dirs)
    schema = from_arrow_schema(pa.schema([("compacted", pa.bool_()), *PARTIALS]))
    arrow = arrow_schema(schema)

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for is_compacted, part in task.run(logs[number]):
                    flags = pa.repeat(pa.scalar(is_compacted), part.num_rows)
                    table = pa.table([flags, *part.columns], names=arrow.names)
                    yield from table.cast(arrow).to_batches()

    return facts.spark.range(0, len(logs), 1, 1).mapInArrow(run, schema)


def _by_partition(log_dirs: Sequence[str]) -> list[list[Range]]:
    """Return the parts of each partition to read, in the order of its log."""
    found: dict[int, list[Range]] = {}
    for task in plan(log_dirs):
        for part in task:
            if isinstance(part, Range):
                found.setdefault(part.partition, []).append(part)
    return list(found.values())


def _folded(directory: Path, audited: str, rules: str) -> Iterator[pa.RecordBatch]:
    """Yield the partial summaries from which a state is merged; their files are named as the audited ones are."""
    for task in plan([str(directory)]):
        for part in task:
            for batch in SUMMARY.run(read_part(part, SUMMARY.columns), rules):
                if batch.num_rows and batch.column("kind")[0].as_py() in _STATE:
                    name = Path(batch.column("file")[0].as_py()).name
                    files = pa.repeat(pa.scalar(str(Path(audited, name))), batch.num_rows)
                    yield batch.set_column(PARTIALS.get_field_index("file"), PARTIALS.field("file"), files)


def _sighting(
    partition: int, file: str, check: str, detail: str, position: int | None = None
) -> pa.RecordBatch:
    values = {"check": check, "count": 1, "at_position": position, "at_offset": None, "detail": detail}
    return make_partial_batch(
        "sighting", (partition, file, 0, 0), {name: [value] for name, value in values.items()}
    )


# --- in Spark ---


def _compared(facts: Facts, rows: DataFrame) -> DataFrame:
    """Return one row with DIFFERENCES for each offset and each group that is not the same before and after."""
    states = []
    for flag in ("not compacted", "compacted"):
        summary = rows.where(flag)
        keys = summary.where("kind in ('offset', 'group')")
        keys = keys.coalesce(1) if facts.spread == 1 else keys.repartition(facts.spread, "partition")
        counting = apply_transaction_markers(
            summaries_of_kind(keys, "offset"), summaries_of_kind(summary, "transaction")
        )
        states.append((merge_offsets(counting), merge_groups(summaries_of_kind(keys, "group"))))
    (offsets, groups), (offsets_left, groups_left) = states
    offset = "concat('group \\'', group, '\\', ', topic, '-', topic_partition)"
    group = "concat('group \\'', group, '\\'')"
    return _differing(offsets, offsets_left, KEY, NEWEST_OFFSET, offset).union(
        _differing(groups, groups_left, GROUP_KEY, NEWEST_GROUP, group)
    )


def _shown(name: str, column: str) -> str:
    if name != "metadata":
        return column
    shortened = f"concat(left({column}, {QUOTED_CHARS_MAX}), '... (', length({column}), ' characters)')"
    return f"if(length({column}) > {QUOTED_CHARS_MAX}, {shortened}, {column})"


def _differing(
    before: DataFrame, after: DataFrame, key: Sequence[str], newest: Iterable[str], what: str
) -> DataFrame:
    """Return the keys whose newest record differs, or that exist on one side only; a deleted key does not exist."""
    names = [name for name in newest if name not in _PLACE]

    def there(table: str) -> str:
        return f"""
            select {", ".join(key)}, {", ".join(_PLACE)},
                if(tombstone, null, struct({", ".join(names)})) as value from {table}
        """

    def shown(value: str) -> str:
        parts = ", ".join(f"{_shown(name, f'{value}.{name}')} as {name}" for name in names)
        return f"if({value} is null, 'nothing', left(to_json(struct({parts})), {_SHOWN_LENGTH}))"

    return before.sparkSession.sql(
        f"""
        select 'compacted' as kind, partition, coalesce(before.file, after.file) as file,
            before.last_position as position, concat('partition ', partition, ', ', {what}, ': ',
            {shown("before.value")}, ' in the log, ', {shown("after.value")}, ' once it is compacted') as message
        from ({there("{before}")}) before full outer join ({there("{after}")}) after using ({", ".join(key)})
        where not before.value <=> after.value
        """,
        before=before,
        after=after,
    )
