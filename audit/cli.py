# SPDX-License-Identifier: Apache-2.0
"""The command line of an audit: `groupkeeper audit`, and `spark-submit ... audit/__main__.py`.

Modules that need Spark are imported only once it is known to be installed.
"""

import argparse
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from audit.errors import AuditError
from audit.options import SEVERITIES, AuditOptions, CheckThresholds, Severity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from audit.report.model import Report

EXIT_CLEAN: Final = 0
EXIT_FINDINGS: Final = 1
EXIT_FAILED: Final = 2
"""The exit code if the audit could not run, or not to its end, so that nothing is known."""

_NEEDED: Final = ("jinja2", "numpy", "pyarrow", "pyspark")
_DAY: Final = "a date (2026-11-21) or a time (2026-11-21T03:00), UTC unless it names a time zone"
_USAGE_ERRORS: Final = (
    (re.compile(r"the following arguments are required: ([^,]+).*"), r"expected \1"),
    (re.compile(r"unrecognized arguments: (-[^\s=]+).*", re.DOTALL), r"no such option: \1"),
    (re.compile(r"unrecognized arguments: (\S+).*", re.DOTALL), r"got unexpected extra argument (\1)"),
    (re.compile(r"argument (\S+): expected one argument"), r"\1: expected a value"),
)
"""The texts of argparse, and those of the other commands."""


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
    try:
        arguments = parser(prog).parse_args(argv)
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


def parser(prog: str = "groupkeeper audit") -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    result = _Parser(
        prog=prog,
        usage="%(prog)s [OPTIONS]",
        add_help=False,
        description="Report whether the log of a node or a broker can be trusted, and what its groups did.",
        allow_abbrev=False,
    )
    add = result.add_argument
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
        type=_severity,
        default="error",
        metavar="SEVERITY",
        help="The lowest severity that causes exit code 1: info, warning or error. [default: error]",
    )
    add("--master", metavar="URL", help="Spark's master. [default: all cores of this machine]")
    add("--since", metavar="DATE", help=f"Report only what happened after this: {_DAY}.")
    add("--as-of", metavar="TIME", help="The time to use as the current time, for an old copy of a log.")
    add(
        "--partitions",
        type=_number_of_partitions,
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


def describe_options() -> Iterator[tuple[str, str]]:
    """Yield each option with its value as the help shows it, and its text."""
    for action in parser()._actions:
        value = f"[{action.metavar}]" if action.nargs == "?" else action.metavar or ""
        yield f"{action.option_strings[0]} {value}".rstrip(), str(action.help)


class _Parser(argparse.ArgumentParser):
    """Raises its errors, in the words of the other commands."""

    def error(self, message: str) -> NoReturn:
        for pattern, ours in _USAGE_ERRORS:
            message = pattern.sub(ours, message)
        raise AuditError(f"{message} (see {self.prog} --help)")


def _options(arguments: argparse.Namespace) -> AuditOptions:
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


def _severity(text: str) -> Severity:
    for severity in SEVERITIES:
        if severity == text:
            return severity
    raise AuditError(f"--fail-on {text}: expected {', '.join(SEVERITIES)}")


def _number_of_partitions(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise AuditError(f"--partitions {text}: expected a whole number, 1 or more")
    return int(text)


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


def _print_report(report: "Report", fail_on: Severity, out: str) -> int:
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
    return EXIT_FINDINGS if is_at_least_as_severe(report.worst_severity(), fail_on) else EXIT_CLEAN


def _one_line(message: str) -> str:
    first = message.strip().split("\n", 1)[0]
    return "".join(char if char.isprintable() else " " for char in first)
