# SPDX-License-Identifier: Apache-2.0
"""The names of the files of a data directory. Most names are Kafka's.

.lock                                one process at a time
meta.properties                      cluster id, node id
.kafka_cleanshutdown                 present only after a clean close
recovery-point-offset-checkpoint     the offset up to which each partition is known to be on disk
journal/<number>.journal             batches that are not in the segments yet; gone after a clean close
journal.<node>/                      the same for one of several nodes that share the directory
open-journals, open-journals.<node>  the journals in use
cleaner-offset-checkpoint            the offset up to which each partition has been compacted
log-start-offset-checkpoint          a broker's: the offset before which no batch counts any more
taken-over-offset-checkpoint         the offset up to which a broker wrote each partition
__consumer_offsets-<p>/<base>.log    the log itself
__consumer_offsets-<p>/<base>.index, .timeindex                      positions in it by offset and by time
__consumer_offsets-<p>/leader-epoch-checkpoint, partition.metadata   its leaders' epochs, its topic's id
__consumer_offsets-<p>/rolled-segments        the segments that must exist before the last one
__consumer_offsets-<p>/*.cleaned, *.swap, *.deleted                  a compaction under way
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from protocol.newtypes import Offset, Partition

OFFSETS_TOPIC: Final = "__consumer_offsets"
LOCK_FILE: Final = ".lock"
META_FILE: Final = "meta.properties"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"
RECOVERY_POINT_FILE: Final = "recovery-point-offset-checkpoint"
CLEANER_OFFSET_FILE: Final = "cleaner-offset-checkpoint"
LOG_START_FILE: Final = "log-start-offset-checkpoint"
TAKEN_OVER_FILE: Final = "taken-over-offset-checkpoint"
POSITION_FILE: Final = "recovery-point-positions"
JOURNAL_DIR: Final = "journal"
"""The directory of the journals of a node that has the data directory for itself."""
OPEN_JOURNALS_FILE: Final = "open-journals"
SPARE_JOURNAL: Final = "spare"
"""A journal that is not in use: about to get a number, or one whose space will be used again."""
ROLLED_SEGMENTS_FILE: Final = "rolled-segments"
PARTITION_METADATA_FILE: Final = "partition.metadata"
LEADER_EPOCH_FILE: Final = "leader-epoch-checkpoint"
LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
INDEX_SUFFIXES: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX)
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
"""The suffixes of a segment's files; the last one exists only if a broker wrote it."""
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
DELETED_SUFFIX: Final = ".deleted"
TEMPORARY_SUFFIX: Final = ".tmp"
"""The suffix of a file that is being written and gets its name once it is whole."""
CUT_SUFFIX: Final = ".cut"
"""The suffix of the bytes that recovery left out of a log, kept for inspection; no broker reads them."""

# With a dot: a dash would make it the directory of a topic's partition, to a Kafka broker.
_NODE_JOURNAL_DIR: Final = re.compile(rf"{JOURNAL_DIR}\.(0|[1-9]\d*)")
_OPEN_JOURNALS: Final = re.compile(rf"{OPEN_JOURNALS_FILE}(|\.(?:0|[1-9]\d*))")
_JOURNAL: Final = re.compile(r"(\d{20})\.journal")
_SEGMENT: Final = re.compile(r"(\d{20})\.log")
_SEGMENT_FILE: Final = re.compile(r"(\d{20})\.")


def partition_dir(data_dir: Path, topic: str, partition: Partition) -> Path:
    """Return the directory of a partition."""
    return data_dir / f"{topic}-{partition}"


def parse_partition_dir(name: str, topic: str) -> Partition | None:
    """Return the partition of `topic` whose directory has this name, or None."""
    start, _, number = name.rpartition("-")
    if start != topic or not number.isascii() or not number.isdigit() or str(int(number)) != number:
        return None
    return Partition(int(number))


def journal_dir(data_dir: Path, node_id: int | None) -> Path:
    """Return the directory of a node's journals; None is the node that has the whole data directory for itself."""
    return data_dir / (JOURNAL_DIR if node_id is None else f"{JOURNAL_DIR}.{node_id}")


def journal_dirs(names: Iterable[str], data_dir: Path) -> list[Path]:
    """Return the directories of journals among the `names` in a data directory."""
    return [data_dir / name for name in names if name == JOURNAL_DIR or _NODE_JOURNAL_DIR.fullmatch(name)]


def journal_list_path(directory: Path) -> Path:
    """Return the path of the file that lists the journals in use in this directory of journals."""
    return directory.with_name(OPEN_JOURNALS_FILE + directory.name.removeprefix(JOURNAL_DIR))


def parse_journal_list_path(path: Path) -> Path | None:
    """Return the directory whose journals the file lists, or None if it is no list of open journals."""
    match = _OPEN_JOURNALS.fullmatch(path.name)
    return path.with_name(JOURNAL_DIR + match[1]) if match else None


def segment_name(base_offset: Offset, suffix: str = LOG_SUFFIX) -> str:
    """Return the name of a file of the segment that starts at `base_offset`; its log by default."""
    return f"{base_offset:020d}{suffix}"


def parse_segment(name: str) -> Offset | None:
    """Return the base offset in the name of a segment's `.log` file, or None for any other name."""
    match = _SEGMENT.fullmatch(name)
    return Offset(int(match[1])) if match else None


def parse_base_offset_of_any_segment_file(name: str) -> Offset:
    """Return the base offset in the name of any file of a segment, with any suffixes; -1 if there is none."""
    match = _SEGMENT_FILE.match(name)
    return Offset(int(match[1]) if match else -1)


def journal_name(number: int) -> str:
    """Return the name of the journal with this number."""
    return f"{number:020d}.journal"


def parse_journal(name: str) -> int | None:
    """Return the number of the journal with this name, or None if it is no journal."""
    match = _JOURNAL.fullmatch(name)
    return int(match[1]) if match else None
