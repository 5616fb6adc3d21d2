# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper import`, which takes over groups and offsets of a stopped broker or a running cluster."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.data_dir import DataDir, load_serve_settings
from coordinator.cli.errors import EXIT_FAILED, EXIT_USAGE, CommandError, exit_on_errors, print_line
from coordinator.cli.options import (
    DEFAULT_BOOTSTRAP,
    NOTHING_DONE,
    Bootstrap,
    CommandConfig,
    Execute,
    Timeout,
)
from coordinator.cli.progress import ProgressBar
from protocol.placement import find_swapped_directories

if TYPE_CHECKING:
    from coordinator.config import Settings
    from coordinator.importer.broker_directories import BrokerDirectories
    from coordinator.importer.survey import Survey
    from coordinator.importer.target import ImportResult
    from storage.disk.filesystem import FileSystem


def import_broker(
    from_log_dirs: Annotated[
        str | None,
        typer.Option(
            metavar="DIR[,DIR...]",
            help="All log.dirs of a broker that has been stopped. Nothing is written there.",
        ),
    ] = None,
    from_bootstrap: Annotated[
        str | None, typer.Option(metavar="HOST:PORT,...", help="Nodes of a running cluster.")
    ] = None,
    from_command_config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Client properties for the cluster of --from-bootstrap."),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP", help="With --from-bootstrap: only groups of this id or pattern; repeatable."
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC", help="With --from-bootstrap: only topics of this name or pattern; repeatable."
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="With --from-log-dirs: the number of partitions of __consumer_offsets, if it is uncertain.",
        ),
    ] = None,
    data_dir: DataDir = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    execute: Execute = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Move the contents of the data directory to a directory next to it; with --from-bootstrap, overwrite "
            "offsets that differ.",
        ),
    ] = False,
    timeout: Timeout = 60.0,
) -> None:
    """Take over groups, offsets and topics from Kafka.

    --from-log-dirs reads a stopped broker, and writes to a data directory that no node uses. --from-bootstrap reads a
    running cluster, and writes to the running node or cluster of --bootstrap.

    Exit code 0: everything was taken over; 1: something was not, or a partition is damaged or in the wrong place; 2:
    the command is invalid.
    """
    with exit_on_errors():
        _refuse_mixed(
            from_log_dirs, from_bootstrap, data_dir, is_limited=bool(group or topic or from_command_config)
        )
        if from_bootstrap is not None and partitions is not None:
            raise CommandError("--partitions works only with --from-log-dirs", EXIT_USAGE)
        if from_bootstrap is not None:
            from coordinator.cli.running_cluster_import import ImportOptions, import_from_running_cluster

            places = (from_bootstrap, from_command_config, bootstrap, command_config)
            import_from_running_cluster(
                ImportOptions(*places, group or (), topic or (), timeout), execute=execute, overwrite=force
            )
            return
    assert from_log_dirs is not None
    _import_directories(from_log_dirs, data_dir, partitions, execute=execute, force=force)


def _refuse_mixed(
    from_log_dirs: str | None, from_bootstrap: str | None, data_dir: str | None, *, is_limited: bool
) -> None:
    """Raise CommandError for flags of the one source that are given with the other, and for both or none."""
    if (from_log_dirs is None) == (from_bootstrap is None):
        raise CommandError("expected --from-log-dirs or --from-bootstrap", EXIT_USAGE)
    if from_bootstrap is not None and data_dir is not None:
        raise CommandError("--from-bootstrap writes to --bootstrap: leave out --data-dir", EXIT_USAGE)
    if from_log_dirs is not None and is_limited:
        raise CommandError("--from-log-dirs takes over everything: leave out --group and --topic", EXIT_USAGE)


def _import_directories(
    from_log_dirs: str, data_dir: str | None, partitions: int | None, *, execute: bool, force: bool
) -> None:
    with exit_on_errors():
        from coordinator.host_resources import real_machine
        from coordinator.importer import broker_directories as sources
        from coordinator.importer.target import DirectoryIdentity, import_data_directory
        from storage.errors import StorageError

        machine, settings = real_machine(), load_serve_settings(data_dir)
        log_dirs = [Path(text) for text in from_log_dirs.split(",") if text]
        if not log_dirs:
            raise CommandError("--from-log-dirs: expected one directory or more", EXIT_USAGE)
        imported = None
        try:
            with ExitStack() as stack:
                sources.lock_log_dirs(machine.fs, log_dirs, stack)
                source = sources.read_broker_directories(machine.fs, log_dirs)
                _check_setting(settings, source)
                _check_stated(partitions, source)
                survey = _survey(machine.fs, source, partitions)
                if execute:
                    identity = DirectoryIdentity(settings.node_id, settings.cluster_id or source.cluster_id)
                    bar, target = ProgressBar("copying partitions"), settings.data_dir
                    imported = import_data_directory(
                        machine, target, source, survey, identity, force=force, track=bar
                    )
        except (StorageError, sources.CannotImport) as error:
            raise CommandError(str(error)) from error
        _print(source, survey, imported, settings.data_dir)
    is_wrong = survey.damaged or find_swapped_directories(survey.placements)
    if is_wrong or (imported is not None and imported.failed):
        raise typer.Exit(EXIT_FAILED)


def _survey(fs: "FileSystem", source: "BrokerDirectories", partitions: int | None) -> "Survey":
    from coordinator.importer.survey import refuse_missing_partitions, survey_partitions

    survey = survey_partitions(
        fs, source.offsets, source.num_partitions, track=ProgressBar("reading partitions")
    )
    if partitions is None:
        refuse_missing_partitions(survey)
    return survey


def _check_setting(settings: "Settings", source: "BrokerDirectories") -> None:
    """Raise CommandError if the setting is neither the broker's number of partitions nor the default."""
    from coordinator.config import Settings

    given, there = settings.offsets_topic_num_partitions, source.num_partitions
    if given not in (there, Settings().offsets_topic_num_partitions):
        raise CommandError(
            f"the broker has {there} partitions, and offsets.topic.num.partitions is {given}: "
            "set it to the broker's number, or leave it out"
        )


def _check_stated(partitions: int | None, source: "BrokerDirectories") -> None:
    """Raise CommandError if --partitions is not the number of partitions that were found."""
    if partitions is not None and partitions != source.num_partitions:
        raise CommandError(
            f"--partitions is {partitions}, but the directories have {source.num_partitions}: name all log directories "
            "of the broker"
        )


def _print(
    source: "BrokerDirectories", survey: "Survey", imported: "ImportResult | None", data_dir: Path
) -> None:
    from coordinator.partitions.misplaced_group_texts import describe_misplaced

    lines = [f"{log_dir}: not stopped cleanly; torn ends were left out" for log_dir in source.unclean]
    for partition, damages in survey.damaged.items():
        where = f"{damages[0].path} at byte {damages[0].position}"
        lines.append(
            f"partition {partition} is damaged: {where}: {damages[0].reason}; repair it before you start the node: "
            f"groupkeeper log repair --partition {partition} --data-dir {data_dir} --execute"
        )
    lines += describe_misplaced(survey.placements)
    if survey.open_transactions:
        lines.append(
            f"{survey.open_transactions} transactions are open: the {survey.open_offsets} offsets in them are left out"
        )
    if survey.unknown_records:
        lines.append(f"{survey.unknown_records} records are of unsupported types; they are kept")
    if imported is not None:
        lines += [f"{cut.path}: {cut.size_bytes} bytes left out: {cut.reason}" for cut in imported.cuts]
        if imported.skipped_topics:
            lines.append(f"topics that cannot be created here: {', '.join(imported.skipped_topics)}")
        if imported.set_aside is not None:
            lines.append(f"the previous contents of {data_dir} are in {imported.set_aside}")
    topics = len(source.topics.keys() | survey.topics.keys()) if imported is None else imported.topics
    what = f"{survey.groups} groups, {survey.offsets} offsets, {topics} topics, {source.num_partitions} partitions"
    lines.append(f"found {what}" if imported is None else f"imported {what}")
    sys.stdout.write("\n".join(lines) + "\n")
    if imported is None:
        print_line(NOTHING_DONE, err=True)
