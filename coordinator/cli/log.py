# SPDX-License-Identifier: Apache-2.0
"""The commands `groupkeeper log check` and `log repair`, which work on the files of the log without a node."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator.cli.data_dir import DataDir, is_data_dir, load_serve_settings, require_directory
from coordinator.cli.errors import EXIT_FAILED, EXIT_USAGE, CommandError, exit_on_errors, print_line
from coordinator.cli.options import NOTHING_DONE, Execute
from coordinator.cli.progress import ProgressBar
from coordinator.config import Settings
from protocol.newtypes import Partition
from protocol.placement import find_swapped_directories, infer_later_partition_count

if TYPE_CHECKING:
    from coordinator.host_resources import HostResources
    from coordinator.importer.lost_catalogue import CatalogueReplacement
    from protocol.placement import GroupPlacementTally
    from storage.disk.filesystem import FileSystem
    from storage.recovery.full_check import CheckedDirectory, CheckedPartition, Damage
    from storage.recovery.journal_loss import AcceptedLoss
    from storage.recovery.repair import Repair

app = typer.Typer(help="Check the log's files, and repair them.", no_args_is_help=True, rich_markup_mode=None)

NAMES_SHOWN: Final = 10


@app.command("check")
def check_log(
    data_dir: DataDir = None,
    partition: Annotated[
        int | None, typer.Option(metavar="P", min=0, help="Only this partition. [default: all]")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Read the whole log, and report what is damaged.

    Changes nothing.

    Exit code 0: nothing is damaged; 1: something is damaged, or a partition's directory is in the wrong place; 2: the
    check could not run. A node may be running on the directory.
    """
    with exit_on_errors():
        from coordinator.cli import render
        from coordinator.host_resources import real_machine
        from storage.errors import StorageError
        from storage.recovery.full_check import check_directory

        directory, fs = require_directory(load_serve_settings(data_dir).data_dir), real_machine().fs
        try:
            found = check_directory(fs, directory, partition, track=ProgressBar("checking partitions"))
            # A running node reports misplaced groups itself, and may compact files during the check.
            placements = [] if found.in_use else _placements(fs, directory, found)
        except StorageError as error:
            raise CommandError(str(error), EXIT_USAGE) from error
        if partition is not None and not found.partitions:
            raise CommandError(f"{directory}: there is no partition {partition}", EXIT_USAGE)
        if not found.partitions and not is_data_dir(directory):
            raise CommandError(f"{directory}: this is not the data directory of a node", EXIT_USAGE)
        if json:
            render.print_json([_as_json(found, placements)])
        else:
            _print_check(found, placements)
    if not found.is_undamaged or find_swapped_directories(placements):
        raise typer.Exit(EXIT_FAILED)


def _placements(fs: "FileSystem", directory: Path, found: "CheckedDirectory") -> "list[GroupPlacementTally]":
    """Return where the groups of each partition belong, nothing if the number of partitions is not known.

    One of several directories of a broker does not have all partitions. Raises StorageError.
    """
    from coordinator.catalogue.startup_checks import try_read_partition_count
    from coordinator.partitions.offline_partition_reader import read_shard, tally_group_placement
    from storage.disk.layout import OFFSETS_TOPIC
    from storage.errors import storage_error
    from storage.format.record_decoder import RecordDecoder
    from storage.recovery.full_check import find_expected_partitions

    loader = RecordDecoder()
    try:
        stated = try_read_partition_count(fs, directory)
        there = find_expected_partitions(fs, directory, OFFSETS_TOPIC)
        if stated is None and there != list(range(len(there))):
            return []
        count = stated or len(there)
        placements = [
            tally_group_placement(read_shard(fs, p, loader).shard, count)
            for p in ProgressBar("reading groups")(found.partitions)
        ]
        return [] if stated is None and infer_later_partition_count(placements) is not None else placements
    except OSError as error:
        raise storage_error(directory, error, "reading") from error


@app.command("repair")
def repair_log(
    partition: Annotated[
        int | None, typer.Option(metavar="P", min=0, help="Repair this partition.", show_default=False)
    ] = None,
    journal: Annotated[
        bool, typer.Option("--journal", help="Continue without the data lost in damaged or missing journals.")
    ] = False,
    catalogue: Annotated[
        bool,
        typer.Option(
            "--catalogue", help="Rebuild a missing or damaged catalogue.json from the topics of the offsets."
        ),
    ] = False,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss", help="With --execute and --journal or --catalogue: accept the data loss."
        ),
    ] = False,
    data_dir: DataDir = None,
    execute: Execute = False,
) -> None:
    """Repair the log of a stopped node.

    Repairs a damaged partition, the journals or the catalogue. Undamaged data is kept, and damaged files are moved
    aside. Committed offsets may be older afterwards: read the output.
    """
    with exit_on_errors():
        if [journal, catalogue, partition is not None].count(True) != 1:
            raise CommandError("expected one of --partition P, --journal or --catalogue", EXIT_USAGE)
        if accept_loss and partition is not None:
            raise CommandError("--accept-loss works only with --journal or --catalogue", EXIT_USAGE)
        settings, accept = load_serve_settings(data_dir), accept_loss and execute
        with _failures_in_words():
            if partition is not None:
                with _locked(settings) as machine:
                    _repair_partition(machine, settings.data_dir, Partition(partition), execute=execute)
            elif journal:
                with _locked(settings) as machine:
                    _repair_journals(machine, settings, accept=accept)
            else:
                with _locked(settings, settled=accept) as machine:
                    _repair_catalogue(machine, settings, accept=accept)


@contextmanager
def _failures_in_words() -> "Iterator[None]":
    """Raise CommandError for errors of the disk or the data directory."""
    from coordinator.importer.broker_directories import CannotImport
    from storage.errors import StorageError

    try:
        yield
    except (StorageError, CannotImport, OSError) as error:
        raise CommandError(str(error)) from error


@contextmanager
def _locked(settings: Settings, *, settled: bool = False) -> "Iterator[HostResources]":
    """Lock the data directory against nodes; `settled` first brings the contents of its journals into the segments."""
    from coordinator.host_resources import real_machine
    from storage.disk.lock import DirectoryLock

    directory, machine = require_directory(settings.data_dir), real_machine()
    if settled:
        _settle_journals(machine.fs, settings)
    lock = DirectoryLock.acquire(machine.fs, directory)
    try:
        yield machine
    finally:
        lock.release()


def _repair_partition(
    machine: "HostResources", directory: Path, partition: Partition, *, execute: bool
) -> None:
    from storage.recovery.repair import carry_out, plan_repair

    fs = machine.fs
    repair = plan_repair(fs, directory, partition)
    if execute:
        repair = carry_out(fs, directory, repair, machine.utc_now())
    _print_repair(repair, partition, execute=execute)


def _repair_journals(machine: "HostResources", settings: Settings, *, accept: bool) -> None:
    from coordinator.config.storage_settings import make_storage_settings
    from storage.recovery.journal_loss import AcceptedLoss, find_damage, recover_despite_loss

    fs, how = machine.fs, make_storage_settings(settings)
    if accept:
        done = recover_despite_loss(fs, settings.data_dir, how, machine.utc_now())
    else:
        done = AcceptedLoss(find_damage(fs, settings.data_dir, how.topic))
    _print_loss(done, accepted=accept)
    if done.damages and not accept:
        raise typer.Exit(EXIT_FAILED)


def _settle_journals(fs: "FileSystem", settings: Settings) -> None:
    """Bring the data that a crash has left in journals to the segments, as a start does. Raises StorageError."""
    from coordinator.catalogue.startup_checks import raise_if_import_unfinished
    from coordinator.config.storage_settings import make_storage_settings
    from storage.log_manager import recover_directory

    raise_if_import_unfinished(fs, settings.data_dir)
    recover_directory(settings.data_dir, make_storage_settings(settings), fs)


def _repair_catalogue(machine: "HostResources", settings: Settings, *, accept: bool) -> None:
    from coordinator.importer.lost_catalogue import plan_new_catalogue, replace_lost_catalogue

    count = settings.offsets_topic_num_partitions
    lost = plan_new_catalogue(machine, settings.data_dir, count)
    if lost is not None and accept:
        replace_lost_catalogue(machine, settings.data_dir, lost, count)
    _print_catalogue(lost, count, accepted=accept)
    if lost is not None and not accept:
        raise typer.Exit(EXIT_FAILED)


def _as_json(found: "CheckedDirectory", placements: "Sequence[GroupPlacementTally]") -> dict[str, object]:
    groups = {each.partition: each for each in placements}
    wrong = find_swapped_directories(placements)

    def damage(one: "Damage") -> dict[str, object]:
        return {
            "file": str(one.path),
            "position": one.position,
            "bytes": one.size_bytes,
            "offset": one.offset,
            "next_offset": one.next_offset,
            "reason": one.reason,
        }

    return {
        "clean": found.is_undamaged,
        "in_use": found.in_use,
        "journal": str(found.journals[0]) if found.journals else None,
        "journals": [str(each) for each in found.journals],
        "partitions": [
            {
                "partition": p.partition,
                "segments": len(p.segments),
                "bytes": p.size_bytes,
                "batches": p.whole_batch_count,
                "records": p.whole_record_count,
                "first_offset": p.first_offset,
                "last_offset": _last_offset(p),
                "damages": [damage(one) for one in p.damages],
                "unsettled": [damage(one) for one in p.unsettled],
                "groups": groups[p.partition].groups if p.partition in groups else None,
                "misplaced": groups[p.partition].misplaced_group_count if p.partition in groups else None,
                "misplaced_groups": groups[p.partition].names if p.partition in groups else None,
                "belongs_to": wrong.get(p.partition),
            }
            for p in found.partitions
        ],
    }


def _last_offset(partition: "CheckedPartition") -> int | None:
    return None if partition.first_offset is None else partition.next_offset - 1


def _print_check(found: "CheckedDirectory", placements: "Sequence[GroupPlacementTally]") -> None:
    from coordinator.cli import render
    from coordinator.cli.texts import format_count
    from coordinator.partitions.misplaced_group_texts import describe_misplaced

    columns = ["PARTITION", "SEGMENTS", "BYTES", "BATCHES", "RECORDS", "FIRST OFFSET", "LAST OFFSET", "STATE"]
    render.print_table(
        columns,
        [
            (
                p.partition,
                len(p.segments),
                p.size_bytes,
                p.whole_batch_count,
                p.whole_record_count,
                p.first_offset,
                _last_offset(p),
                "DAMAGED" if p.damages else "unsettled end" if p.unsettled else "whole",
            )
            for p in found.partitions
        ],
    )
    lines = []
    for p in found.partitions:
        lines += [f"partition {p.partition} is damaged: {_where(one)}" for one in p.damages]
        if found.in_use is None:
            lines += [
                f"partition {p.partition} has an unsettled end, which the next start settles: {_where(one)}"
                for one in p.unsettled
            ]
    lines += [f"the journal is damaged: {each}" for each in found.journals]
    lines += describe_misplaced(placements)
    if found.in_use is not None:
        lines.append(
            f"{found.in_use}: its journal was not checked, nor the end of the log, which it may be writing"
        )
    damaged = sum(bool(p.damages) for p in found.partitions)
    lines.append(f"{format_count(len(found.partitions), 'partition')}, {damaged} damaged")
    sys.stdout.write("\n" + "\n".join(lines) + "\n")


def _where(damage: "Damage") -> str:
    until = "" if damage.next_offset is None else f", intact again from offset {damage.next_offset}"
    size = f"{damage.size_bytes} bytes from " if damage.size_bytes else "at "
    return f"{damage.path}, {size}byte {damage.position}, offset {damage.offset}: {damage.reason}{until}"


def _print_repair(repair: "Repair", partition: int, *, execute: bool) -> None:
    checked, loss = repair.checked, repair.loss
    lines = []
    if not checked.damages:
        lines.append(f"partition {partition} is not damaged: nothing was done")
    else:
        lines += [f"damage: {_where(one)}" for one in checked.damages]
        lines.append(f"saved: {checked.whole_batch_count} batches with {checked.whole_record_count} records")
        lines.append(
            f"lost: {repair.lost_bytes} bytes, which held {repair.lost_offset_count} offsets of the log"
        )
        lines.append(f"certain: {loss.certain} committed offsets, whose newest record comes after the damage")
        lines.append(
            f"MAY BE OLDER THAN WHAT WAS COMMITTED: {len(loss.older)} offsets in"
            f" {len({group for group, *_ in loss.older})} groups, and {len(loss.groups_older)} groups' generations;"
            " offsets and groups deleted in the lost part may exist again, and those only in the lost part are lost"
        )
        if loss.named_in_damage:
            lines.append(f"named in the lost part, as far as it can be read: {_some(loss.named_in_damage)}")
        if repair.aside is not None:
            lines.append(f"the original segments, and a list of these offsets: {repair.aside}")
    for line in lines:
        print_line(line)
    if not execute:
        print_line(NOTHING_DONE, err=True)


def _print_loss(done: "AcceptedLoss", *, accepted: bool) -> None:
    lines = [f"damage: {each}" for each in done.damages]
    if not done.damages:
        lines.append("the journals are not damaged: nothing was done")
    elif not accepted:
        lines.append(
            "nothing was changed. If these files cannot be restored, --execute --accept-loss continues without the"
            " lost data: COMMITTED OFFSETS MAY THEN BE OLDER, those committed since the last checkpoint"
        )
    else:
        lines += [f"left out: {cut.path}, byte {cut.position}: {cut.reason}" for cut in done.cuts]
        lines += [f"moved aside: {path}" for path in done.aside]
        ends = ", ".join(f"{partition} at {end}" for partition, end in sorted(done.ends.items()))
        lines.append(f"each partition continues at this offset of its log: {ends}")
        lines.append(
            "COMMITTED OFFSETS MAY BE OLDER THAN WHAT WAS ACKNOWLEDGED, those committed since the last checkpoint"
        )
    for line in lines:
        print_line(line)


def _print_catalogue(lost: "CatalogueReplacement | None", num_partitions: int, *, accepted: bool) -> None:
    if lost is None:
        lines = ["the catalogue is not damaged: nothing was done"]
    else:
        survey = lost.survey
        lines = [
            f"damage: {lost.damage}",
            f"found {survey.groups} groups, placed in {num_partitions} partitions of __consumer_offsets, and"
            f" {len(lost.topics)} topics named by their {survey.offsets} offsets",
        ]
        if survey.damaged:
            lines.append(
                f"damaged partitions, which may name further topics: {', '.join(map(str, survey.damaged))}"
            )
        if lost.skipped_topics:
            lines.append(f"topics that cannot be created: {_some(lost.skipped_topics)}")
        if lost.aside is not None:
            lines.append(f"moved aside: {lost.aside}")
        lines.append(
            "THESE TOPICS HAVE NEW IDS, only the partitions that offsets need, and no settings; others are lost"
            if accepted
            else "nothing was changed. If the file cannot be restored, --execute --accept-loss rebuilds it from this:"
            " TOPICS THEN GET NEW IDS, only the partitions that offsets need, and no settings; others are lost"
        )
    for line in lines:
        print_line(line)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more
