# SPDX-License-Identifier: Apache-2.0
"""The command line of an audit: `groupkeeper audit`, and `spark-submit ... audit/__main__.py`.

Modules that need Spark are imported only once it is known to be installed.
"""

import argparse
import importlib.util
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from audit.errors import AuditError
from audit.options import SEVERITIES, AuditOptions, CheckThresholds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from audit.report.model import Report

EXIT_CLEAN: Final = 0
EXIT_FINDINGS: Final = 1
EXIT_FAILED: Final = 2
"""The exit code if the audit could not run, or not to its end, so that nothing is known."""

_NEEDED: Final = ("jinja2", "numpy", "pyarrow", "pyspark")
_DAY: Final = "a date (2026-11-21) or a time (2026-11-21T03:00), UTC unless it names a time zone"


def main(
    argv: Sequence[str],
    prog: str = "groupkeeper audit",
    session: "SparkSession | None" = None,
    find_end_groups: Callable[[Sequence[str]], Iterable[str]] = lambda _log_dirs: (),
) -> int:
    """Audit, and return the exit code: 0 clean, 1 findings at or above --fail-on, 2 could not run.

    A given `session` is used, and not ended. `find_end_groups` returns the end groups of the topics of log directories,
    in addition to those that the flags name.
    """
    arguments = parser(prog).parse_args(list(argv))
    try:
        options = _options(arguments)
        end_groups = options.end_groups.union(find_end_groups(options.log_dirs))
        options = msgspec.structs.replace(options, end_groups=end_groups)
        report = _run(options, arguments.master, session)
    except AuditError as error:
        print(f"groupkeeper: {_one_line(str(error))}", file=sys.stderr)  # noqa: T201 - the output of the command
        return EXIT_FAILED
    except Exception:  # noqa: BLE001 - 1 would mean that the audit has finished
        traceback.print_exc()
        return EXIT_FAILED
    return _print_report(report, arguments.fail_on, options.out)


def parser(prog: str) -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    result = argparse.ArgumentParser(
        prog=prog,
        usage="%(prog)s [OPTIONS]",
        formatter_class=_Help,
        add_help=False,
        description="Report whether the log of a node or a broker can be trusted, and what its groups did.",
        epilog="Exit code: 0 clean, 1 findings at or above --fail-on, 2 could not run.",
        allow_abbrev=False,
    )
    add = result.add_argument_group("Options").add_argument
    add(
        "--log-dirs",
        required=True,
        metavar="DIR",
        help="Log directories, separated by commas; their node or broker may be running.",
    )
    add(
        "--out",
        required=True,
        metavar="DIR",
        help="The directory for reports and tables; the next audit reads them.",
    )
    add(
        "--against",
        metavar="HOST:PORT",
        help="Compare with what this cluster reports over Kafka's protocol.",
    )
    add(
        "--compacted",
        nargs="?",
        const=tempfile.gettempdir(),
        metavar="DIR",
        help="Compact a copy of each log below DIR, and compare. [default: the system's temporary directory]",
    )
    add(
        "--fail-on",
        choices=SEVERITIES,
        default="error",
        help="The lowest severity that causes exit code 1. [default: error]",
    )
    add("--master", metavar="URL", help="Spark's master. [default: all cores of this machine]")
    add("--since", metavar="DATE", help=f"Report only what happened after this: {_DAY}.")
    add("--as-of", metavar="TIME", help="The time to use as the current time, for an old copy of a log.")
    add(
        "--partitions",
        type=int,
        metavar="N",
        help="The broker's offsets.topic.num.partitions, if the directories do not show it.",
    )
    add(
        "--end-group",
        action="append",
        default=[],
        metavar="GROUP",
        help="A group that declares where topics end; repeatable. The topics of a node name theirs.",
    )
    names = ", ".join(field.name for field in msgspec.structs.fields(CheckThresholds))
    add(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"Override the default of a limit: {names}.",
    )
    add("--help", action="help", help="Show this message and exit.")
    return result


class _Help(argparse.HelpFormatter):
    """Formats the help text as the other commands do."""

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, "Usage: ")


def _options(arguments: argparse.Namespace) -> AuditOptions:
    if arguments.partitions is not None and arguments.partitions < 1:
        raise AuditError(f"--partitions {arguments.partitions}: expected 1 or more")
    return AuditOptions(
        log_dirs=tuple(part.strip() for part in arguments.log_dirs.split(",") if part.strip()),
        out=arguments.out,
        against=arguments.against,
        compacted=arguments.compacted,
        as_of_ms=_moment("--as-of", arguments.as_of) if arguments.as_of else int(time.time() * 1000),
        since_ms=_moment("--since", arguments.since) if arguments.since else 0,
        end_groups=frozenset(arguments.end_group),
        num_partitions=arguments.partitions,
        limits=_limits(arguments.limit),
    )


def _moment(flag: str, text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise AuditError(f"{flag} {text}: expected {_DAY}") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _limits(given: Sequence[str]) -> CheckThresholds:
    values = dict(item.partition("=")[::2] for item in given)
    known = {field.name: field.type for field in msgspec.structs.fields(CheckThresholds)}
    for name in values.keys() - known.keys():
        raise AuditError(f"--limit {name}: unknown limit; expected one of {', '.join(sorted(known))}")
    for name, text in values.items():
        try:
            msgspec.convert(text, known[name], strict=False)
        except msgspec.ValidationError:
            kind = "a whole number" if known[name] is int else "a number"
            raise AuditError(f"--limit {name}={text}: expected {kind}") from None
    return msgspec.convert(values, CheckThresholds, strict=False)


def _run(options: AuditOptions, master: str | None, session: "SparkSession | None") -> "Report":
    _check_installed()
    _check_options(options)
    from audit.run.progress import Progress

    with Progress(sys.stderr) as progress:
        progress.show_step("starting Spark")
        from pyspark.errors import PySparkException

        from audit.session import get_or_create_session

        with ThreadPoolExecutor(1) as starting:
            started = starting.submit(lambda: session or get_or_create_session(master))
            from audit.run.audit import audit  # which imports much, while Java starts

            spark = started.result()
        progress.watch(spark)
        try:
            return audit(spark, options, step=progress.show_step)
        except PySparkException as error:
            raise AuditError(f"Spark failed: {error}") from error
        finally:
            progress.close()
            if session is None:
                spark.stop()


def _check_installed() -> None:
    """Raise AuditError if a library or Java, on which the audit runs, is missing."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise AuditError(
            f"the audit needs {', '.join(missing)}: in Groupkeeper's source tree `make install-audit` installs "
            "all of it into .venv, and `docker build --target audit .` builds an image that contains it"
        )
    if not _has_java():
        raise AuditError(
            "the audit runs on Spark, which needs a Java runtime, version 17 or later: install one "
            "(Debian and Ubuntu: apt-get install openjdk-17-jre-headless), or set JAVA_HOME"
        )


def _check_options(options: AuditOptions) -> None:
    """Raise AuditError for options that cannot work, before Spark takes its seconds to start.

    Directories that a URL names are checked later, because that needs Spark.
    """
    from audit.compared.live_state_reader import check_server_responds
    from audit.facts.inventory import join_directory_snapshots
    from audit.report.write import check_writable
    from audit.source.compacted_copy import check_work_dir
    from audit.source.directory_snapshot import take_directory_snapshot
    from audit.source.remote import is_url

    local = [log_dir for log_dir in options.log_dirs if not is_url(log_dir)]
    if local:
        join_directory_snapshots({log_dir: take_directory_snapshot(log_dir) for log_dir in local})
    if options.compacted is not None:
        check_work_dir(options.compacted, options.log_dirs)
    check_writable(Path(options.out))
    if options.against is not None:
        check_server_responds(options.against)


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java") is not None if not home else (Path(home) / "bin" / "java").exists()


def _print_report(report: "Report", fail_on: str, out: str) -> int:
    from audit.report.markdown import verdict
    from audit.report.model import is_at_least_as_severe

    run = report.run
    lines = [
        verdict(report),
        *(
            f"  {one.severity}: {one.display_name}, {one.occurrences_text}"
            for severity in reversed(SEVERITIES)
            for one in report.results_of_severity(severity)
        ),
        f"{run.records:,} records in {run.partitions} partitions, {run.groups:,} groups, {run.offsets:,} offsets; "
        f"{run.seconds:.1f} s",
        f"see {Path(out) / 'report.html'}",
    ]
    print("\n".join(lines))  # noqa: T201 - the output of the command
    bad = is_at_least_as_severe(
        report.worst_severity(), next(severity for severity in SEVERITIES if severity == fail_on)
    )
    return EXIT_FINDINGS if bad else EXIT_CLEAN


def _one_line(message: str) -> str:
    first = message.strip().split("\n", 1)[0]
    return "".join(char if char.isprintable() else " " for char in first)
