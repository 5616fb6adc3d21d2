# SPDX-License-Identifier: Apache-2.0
"""Replaces a missing or damaged catalogue of a data directory with one of the topics that offsets name.

The ids of topics and their configs are lost, and so are topics in which nothing is committed.
"""

from pathlib import Path

import msgspec

from coordinator.catalogue.errors import CorruptCatalogue, MissingCatalogue
from coordinator.catalogue.file import CatalogueFile
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic import Topic
from coordinator.host_resources import HostResources
from coordinator.importer.broker_directories import CannotImport
from coordinator.importer.survey import Survey, survey_partitions
from coordinator.importer.target import merge_known_topics
from coordinator.partitions.misplaced_group_texts import describe_misplaced
from protocol.placement import infer_earlier_partition_count, infer_later_partition_count
from storage.disk.filesystem import FileSystem
from storage.errors import StorageError, storage_error
from storage.recovery.recovery import find_or_generate_topic_id, partitions_on_disk


class CatalogueReplacement(msgspec.Struct):
    """The damage of a catalogue, and the contents of its replacement; `aside` is where a damaged one was put."""

    damage: StorageError
    topics: list[Topic]
    skipped_topics: list[str]
    survey: Survey
    aside: Path | None = None


def find_damage(fs: FileSystem, data_dir: Path) -> StorageError | None:
    """Return the error that keeps a node from starting with this catalogue, or None. Raises StorageError."""
    file = CatalogueFile(fs, data_dir)
    try:
        file.read()
    except FileNotFoundError:
        try:
            file.refuse_lost_file()
        except MissingCatalogue as missing:
            return missing
    except CorruptCatalogue as corrupt:
        return corrupt
    return None


def plan_new_catalogue(
    machine: HostResources, data_dir: Path, num_partitions: int
) -> CatalogueReplacement | None:
    """Return what a new catalogue would hold; None if none is needed. Changes nothing.

    Raises StorageError, and CannotImport if `num_partitions` does not explain in which partitions the groups are.
    """
    fs = machine.fs
    damage = find_damage(fs, data_dir)
    if damage is None:
        return None
    try:
        partitions = partitions_on_disk(fs, data_dir, OFFSETS_TOPIC)
    except OSError as error:
        raise storage_error(data_dir, error, "looking for partitions") from error
    survey = survey_partitions(fs, dict.fromkeys(partitions, data_dir), num_partitions)
    if (
        infer_later_partition_count(survey.placements) is not None
        or infer_earlier_partition_count(survey.placements) is None
    ):
        # A topic whose partitions were increased has such groups, too.
        for line in describe_misplaced(survey.placements):
            raise CannotImport(f"{line}; is {num_partitions} the right number of partitions?")
    skipped: list[str] = []
    return CatalogueReplacement(
        damage, list(merge_known_topics({}, survey, skipped, machine.new_topic_id)), skipped, survey
    )


def replace_lost_catalogue(
    machine: HostResources, data_dir: Path, lost: CatalogueReplacement, num_partitions: int
) -> None:
    """Put the new catalogue in place; a damaged one is kept under another name. Raises StorageError."""
    fs, now = machine.fs, machine.utc_now()
    file = CatalogueFile(fs, data_dir)
    try:
        topic_id = find_or_generate_topic_id(fs, data_dir, OFFSETS_TOPIC)
        if fs.exists(file.path):
            lost.aside = data_dir / f"damaged-{now:%Y%m%dT%H%M%SZ}-{file.path.name}"
            fs.rename(file.path, lost.aside)
            fs.fsync_dir(data_dir)
    except OSError as error:
        raise storage_error(data_dir, error, "repairing") from error
    file.make(Topic(name=OFFSETS_TOPIC, id=topic_id, partitions=num_partitions), lost.topics)
