# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper serve` up to the moment when the node takes over, and the rest of the command line."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.app import ServingAddresses
from coordinator.cli.serve import announce_on_terminal
from coordinator.config import Address, Settings
from coordinator.version import __version__
from tests.cli.conftest import Command, runner

EXIT_CODE = 17


@pytest.fixture
def served() -> list[Settings]:
    """The settings of every node that was started instead of a real one, by `groupkeeper`."""
    return []


@pytest.fixture
def groupkeeper(served: list[Settings]) -> Command:
    """Run `groupkeeper` with arguments; nodes are only noted."""

    def run(settings: Settings) -> int:
        served.append(settings)
        return EXIT_CODE

    return runner(run)


def test_serve_runs_a_node_and_ends_with_its_exit_code(groupkeeper: Command, served: list[Settings]) -> None:
    assert groupkeeper("serve").exit_code == EXIT_CODE
    assert served == [Settings()]


def test_every_flag_reaches_the_node(groupkeeper: Command, served: list[Settings], tmp_path: Path) -> None:
    config = tmp_path / "groupkeeper.toml"
    config.write_text("group.max.size = 10\nnum.partitions = 3\n")
    groupkeeper(
        "serve",
        *("--config", str(config)),
        *("--listen", "127.0.0.1:1"),
        *("--advertise", "kafka.example:2"),
        *("--data-dir", "somewhere"),
        *("--metrics", "127.0.0.1:3"),
        *("--set", "num.partitions=12"),
        *("--set", "log.flush=os"),
    )
    assert served == [
        Settings(
            listen=Address("127.0.0.1", 1),
            advertise=Address("kafka.example", 2),
            data_dir=Path("somewhere"),
            metrics_listen=Address("127.0.0.1", 3),
            group_max_size=10,
            num_partitions=12,
            log_flush="os",
        )
    ]


def test_the_environment_reaches_the_node(
    groupkeeper: Command, served: list[Settings], tmp_path: Path
) -> None:
    (tmp_path / "a.toml").write_text("group.max.size = 10\n")
    groupkeeper("serve", GROUPKEEPER_CONFIG=str(tmp_path / "a.toml"), GROUPKEEPER_LOG_FLUSH="interval")
    assert served == [Settings(group_max_size=10, log_flush="interval")]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["--set", "log.flsh=os"],
            "groupkeeper: unknown setting log.flsh (--set); did you mean log.flush?\n",
        ),
        (
            ["--listen", "9092"],
            "groupkeeper: bad value for listen: '9092' (--listen), "
            "expected HOST:PORT with a port from 0 to 65535\n",
        ),
        (
            ["--config", "/no/such/file"],
            "groupkeeper: cannot read the config file /no/such/file: No such file or directory\n",
        ),
        (["--set", "x"], "groupkeeper: --set x: expected KEY=VALUE, such as --set log.flush=os\n"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    groupkeeper: Command, served: list[Settings], arguments: list[str], line: str
) -> None:
    assert groupkeeper("serve", *arguments) == (2, "", line)
    assert served == []


def test_an_unknown_flag_is_exit_code_2(groupkeeper: Command, served: list[Settings]) -> None:
    outcome = groupkeeper("serve", "--bootstrap", "a:1")
    assert outcome.exit_code == 2
    assert "no such option" in outcome.stderr
    assert served == []


def test_version(groupkeeper: Command) -> None:
    assert groupkeeper("--version") == (0, f"groupkeeper {__version__}\n", "")


def test_settings_prints_the_example_file(groupkeeper: Command) -> None:
    example = Path(__file__).resolve().parents[2] / "deploy" / "config.example.toml"
    assert groupkeeper("settings") == (0, example.read_text(), "")


def test_metrics_prints_the_page_of_metrics(groupkeeper: Command) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
    assert groupkeeper("metrics") == (0, page.read_text(), "")


@pytest.mark.process
def test_the_command_line_imports_little_before_the_node() -> None:
    code = "import sys, coordinator.cli.main; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    heavy = {"aiohttp", "asyncio", "kafka", "prometheus_client", "pydantic", "rich", "structlog", "tomllib"}
    heavy |= {"audit", "coordinator.catalogue"}
    assert heavy.isdisjoint(loaded.split())


@pytest.mark.process
def test_a_reader_that_leaves_early_gets_no_traceback() -> None:
    command = [sys.executable, "-m", "coordinator.cli.main", "settings"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert (process.communicate()[1], process.returncode) == (b"", 1)


class Terminal(io.StringIO):
    """Where a person looks."""

    def isatty(self) -> bool:
        return True


def test_a_node_says_where_it_is_and_what_to_try() -> None:
    there = Address("127.0.0.1", 9092)
    serving = ServingAddresses(there, Address("broker", 9092), "http://127.0.0.1:9308/metrics")
    pipe, terminal = io.StringIO(), Terminal()
    announce_on_terminal(pipe, serving)
    assert pipe.getvalue() == "", "who reads a pipe reads the log"
    announce_on_terminal(terminal, serving)
    printed = terminal.getvalue()
    assert "serves Kafka clients on 127.0.0.1:9092 (clients connect to broker:9092)" in printed
    assert "groups list --bootstrap 127.0.0.1:9092" in printed
    assert "http://127.0.0.1:9308/metrics" in printed
