# SPDX-License-Identifier: Apache-2.0
"""What all commands have in common: help, exit codes, completion, narrow terminals, --watch."""

import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from bench.installed import groupkeeper as installed
from coordinator.cli.errors import CommandError
from coordinator.cli.help import EXAMPLES
from coordinator.cli.main import app
from coordinator.cli.render import format_rows_vertically
from coordinator.cli.watch_option import show_repeatedly
from protocol.apis import ApiKey
from tests.cli.answers import committed, described, listed, member
from tests.cli.conftest import Command
from tests.cli.fake import FakeNode
from tests.cli.terminals import on_a_terminal
from tests.support.processes import environment
from tests.support.waiting import wait_until

DOCUMENTED = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")


def commands() -> Iterator[tuple[str, ...]]:
    """The words of every command."""
    tree = typer.main.get_command(app)
    for name, command in tree.commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        yield from ((name, each) for each in inner) if inner else ((name,),)


def trees() -> Iterator[tuple[str, ...]]:
    """The words of everything that has commands below it."""
    yield ()
    yield from dict.fromkeys((words[0],) for words in commands() if len(words) == 2)


def flags_of(words: tuple[str, ...]) -> dict[str, Any]:
    """The options of a command, by each of their names."""
    command = typer.main.get_command(app)
    for word in words:
        command = command.commands[word]  # type: ignore[attr-defined]
    return {name: param for param in command.params for name in (*param.opts, *param.secondary_opts)}


def test_flags_of_kafkas_tools_work(groupkeeper: Command, node: FakeNode) -> None:
    for words in commands():
        flags = flags_of(words)
        assert flags.get("--bootstrap-server") is flags.get("--bootstrap")
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: described(state="Empty")
    node.answers[ApiKey.OFFSET_FETCH] = lambda *_: committed()
    ours = groupkeeper("groups", "describe", "g", "--bootstrap", node.bootstrap)
    at = ("--bootstrap-server", node.bootstrap)
    assert groupkeeper("groups", "describe", "--group", "g", "--verbose", *at) == ours
    assert ours.exit_code == 0
    deleted = groupkeeper("groups", "delete", "--group", "g", "--dry-run", *at)
    assert deleted.stdout == "would be deleted: g\n"


@pytest.mark.parametrize("words", [("groups", "delete-offsets"), ("groups", "remove-members")], ids=" ".join)
def test_a_command_for_one_group_takes_its_id_once(groupkeeper: Command, words: tuple[str, str]) -> None:
    for named, said in (((), "expected the id of a GROUP"), (("g", "--group", "g"), "expected one GROUP")):
        ran = groupkeeper(*words, *named)
        assert (ran.exit_code, ran.stdout, ran.stderr) == (2, "", f"groupkeeper: {said}\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("bogus", "no such command 'bogus' (see groupkeeper --help)"),
        ("--bogus", "no such option: --bogus (see groupkeeper --help)"),
        ("groups list --format json", "no such option: --format (see groupkeeper groups list --help)"),
        (
            "groups list --jsno",
            "no such option: --jsno; there is --json (see groupkeeper groups list --help)",
        ),
        ("groups list --watch", "--watch: expected a value"),
        ("groups list --watch x", "--watch: expected a number (see groupkeeper groups list --help)"),
        ("groups list --timeout 0", "--timeout: expected 0.1 or more (see groupkeeper groups list --help)"),
        ("topics create", "expected TOPIC (see groupkeeper topics create --help)"),
        (
            "topics create a --partitions x",
            "--partitions: expected a whole number (see groupkeeper topics create --help)",
        ),
        ("partitions move 3", "expected --to (see groupkeeper partitions move --help)"),
        ("groups import /nonexistent/file --group g", "/nonexistent/file: No such file or directory"),
        ("groups reset g", "expected one of --to-earliest"),
        ("audit --out o", "expected --log-dirs (see groupkeeper audit --help)"),
        ("audit --log-dirs d --out", "--out: expected a value"),
        ("audit --log-dirs d --out o --to=1 2", "no such option: --to (see groupkeeper audit --help)"),
        (
            "audit --log-dirs d --out o x y",
            "got unexpected extra argument (x) (see groupkeeper audit --help)",
        ),
        ("audit --log-dirs d --out o --fail-on odd", "--fail-on odd: expected info, warning, error"),
    ],
)
def test_a_usage_error_is_one_line_that_says_what_is_expected(
    groupkeeper: Command, arguments: str, said: str
) -> None:
    ran = groupkeeper(*arguments.split())
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"groupkeeper: {said}")
    assert ran.stderr.count("\n") == 1


CHANGING = {
    *(("groups", name) for name in ("copy", "delete", "delete-offsets", "import", "remove-members", "reset")),
    ("topics", "alter"),
    ("topics", "delete"),
    ("log", "repair"),
    ("import",),
    ("adopt",),
    ("give-back",),
}
"""The commands that take away, overwrite or move something."""


def test_what_changes_something_only_shows_it_without_execute() -> None:
    found = set()
    for words in commands():
        options = flags_of(words)
        if "--execute" in options:
            assert options["--execute"].default is False
            assert options["--dry-run"] is options["--execute"]
            found.add(words)
        else:
            assert "--dry-run" not in options
    assert found == CHANGING


def test_every_example_is_a_command() -> None:
    assert set(EXAMPLES) == {" ".join(words) for words in commands()}
    for words, examples in EXAMPLES.items():
        for example in examples:
            program, *arguments = shlex.split(example.partition(" > ")[0])
            assert program == "groupkeeper"
            command: Any = typer.main.get_command(app)
            for word in words.split():
                assert arguments.pop(0) == word
                command = command.commands[word]
            command.make_context(words, arguments)  # raises for a flag that it does not know


@pytest.mark.parametrize("words", sorted(CHANGING), ids=" ".join)
def test_a_command_is_either_executed_or_not(groupkeeper: Command, words: tuple[str, ...]) -> None:
    for flags in (("--execute", "--dry-run"), ("--dry-run", "--execute")):
        ran = groupkeeper(*words, *flags)
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert ran.stderr == "groupkeeper: expected either --execute or --dry-run\n"


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_help_has_one_style(groupkeeper: Command, words: tuple[str, ...]) -> None:
    ran = groupkeeper(*words, "--help")
    assert ran.exit_code == 0
    lines = ran.stdout.strip().splitlines()
    assert lines[0].startswith(f"Usage: groupkeeper {' '.join(words)} [OPTIONS]")
    assert "Options:" in lines
    end = lines.index("  Examples:")
    assert re.fullmatch(r"\s+--help\s+Show this message and exit\.", lines[end - 2])
    assert all(line.startswith(f"    groupkeeper {' '.join(words)}") for line in lines[end + 1 :])
    assert not re.search(r"<(list|str|int|float|path|bool)", ran.stdout), "a type of Python is named"
    assert max(map(len, lines)) <= 80
    assert not re.search(r"\[default: [^]]*\]\s+\[default", ran.stdout), "a default is told twice"


@pytest.mark.parametrize("words", list(trees()), ids=" ".join)
def test_no_command_is_introduced_by_half_a_sentence(groupkeeper: Command, words: tuple[str, ...]) -> None:
    lines = groupkeeper(*words, "--help").stdout.splitlines()
    listed_below = lines[lines.index("Commands:") + 1 :]
    assert listed_below
    for line in listed_below:
        assert line.endswith("."), line
        assert not line.endswith("..."), line


def test_every_command_is_documented() -> None:
    table = DOCUMENTED[: DOCUMENTED.index("## Which cluster")]
    named = set(re.findall(r"`([a-z -]+)`", table))
    assert {" ".join(words) for words in commands()} <= named


def test_every_property_that_is_read_is_documented() -> None:
    source = (Path(__file__).parents[2] / "coordinator" / "cli" / "cluster" / "security.py").read_text()
    for name in set(re.findall(r'properties(?:\.get\(|\[)"([a-z.]+)"', source)):
        assert f"`{name}`" in DOCUMENTED, name


# --- exit codes ---


def test_exit_codes_are_those_documented(node: FakeNode, groupkeeper: Command) -> None:
    rows = dict(re.findall(r"^\| (\d+) \| (.+) \|$", DOCUMENTED, re.MULTILINE))
    assert rows.keys() == {"0", "1", "2", "130"}
    node.answers[ApiKey.LIST_GROUPS] = lambda *_: listed(("g", "Empty"))
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: described(state="Dead")
    at = ("--bootstrap", node.bootstrap)
    assert groupkeeper("groups", "list", *at).exit_code == 0
    assert groupkeeper("groups", "describe", "g", *at).exit_code == 1
    assert groupkeeper("groups", "list", "--bootstrap", "127.0.0.1:1").exit_code == 1
    for mistake in (("--no-such-flag",), ("--state", "odd"), ("--bootstrap", "x"), ("--timeout", "0")):
        assert groupkeeper("groups", "list", *mistake).exit_code == 2


MISTAKES = [
    ("groups", "reset", "g", "--all-topics"),
    ("groups", "reset", "g", "--all-topics", "--to-earliest", "--to-latest"),
    ("groups", "reset", "g", "--to-earliest"),
    ("groups", "reset", "g", "--topic", "t", "--all-topics", "--to-earliest"),
    ("groups", "reset", "g", "--topic", "t", "--from-file", "f"),
    ("groups", "reset", "--topic", "t", "--to-earliest"),
    ("groups", "reset", "g", "--topic", "t", "--to-offset", "-1"),
    ("groups", "reset", "g", "--topic", "t", "--by-duration", "long"),
    ("groups", "delete"),
    ("groups", "delete", "g", "--all-groups"),
    ("groups", "delete-offsets", "g"),
    ("groups", "delete-offsets", "g", "--all-topics", "--topic", "t"),
    ("groups", "delete-offsets", "g", "--topic", "t", "--from-file", "f"),
    ("groups", "remove-members", "g"),
]


@pytest.mark.parametrize("words", MISTAKES, ids=" ".join)
def test_a_mistake_is_told_in_one_line_before_anything_is_changed(
    node: FakeNode, groupkeeper: Command, words: tuple[str, ...]
) -> None:
    ran = groupkeeper(*words, "--bootstrap", node.bootstrap)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr
    assert node.count(ApiKey.OFFSET_COMMIT) == node.count(ApiKey.DELETE_GROUPS) == 0


# --- which cluster ---


def test_the_environment_names_the_cluster(node: FakeNode, groupkeeper: Command) -> None:
    node.answers[ApiKey.LIST_GROUPS] = lambda *_: listed(("g", "Empty"))
    assert "g" in groupkeeper("groups", "list", GROUPKEEPER_BOOTSTRAP=node.bootstrap).stdout
    assert (
        groupkeeper("groups", "list", "--bootstrap", "127.0.0.1:1", GROUPKEEPER_BOOTSTRAP=node.bootstrap)[0]
        == 1
    )
    assert groupkeeper("settings", GROUPKEEPER_BOOTSTRAP="kafka:9092").exit_code == 0


def test_nodes_that_cannot_be_reached_are_passed_over(node: FakeNode, groupkeeper: Command) -> None:
    node.answers[ApiKey.LIST_GROUPS] = lambda *_: listed(("g", "Empty"))
    several = groupkeeper("groups", "list", "--bootstrap", f"127.0.0.1:1, {node.bootstrap},127.0.0.1:2")
    assert several.exit_code == 0
    none = groupkeeper("groups", "list", "--bootstrap", "127.0.0.1:1,127.0.0.1:2")
    refused = "cannot connect to 127.0.0.1:{}: Connection refused"
    assert none == (1, "", f"groupkeeper: {refused.format(1)}; {refused.format(2)}\n")


# --- completion ---


def completed(*words: str) -> list[str]:
    """What bash is offered for the last of these words."""
    given = {
        "_GROUPKEEPER_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("groupkeeper", *words)),
        "COMP_CWORD": str(len(words)),
    }
    ran = subprocess.run(
        installed(), capture_output=True, text=True, env=environment(given), timeout=120, check=False
    )
    return ran.stdout.split()


@pytest.mark.process
def test_commands_and_flags_are_completed() -> None:
    assert completed("groups", "re") == ["remove-members", "reset"]
    assert completed("topics", "create", "--part") == ["--partitions"]


# --- terminals ---

LONG = "a-group-with-a-name-that-is-wider-than-this-terminal-0123456789"


@pytest.mark.process
def test_on_a_narrow_terminal_nothing_is_cut(node: FakeNode) -> None:
    node.answers[ApiKey.LIST_GROUPS] = lambda *_: listed((LONG, "Stable"), ("b", "Empty"))
    arguments = ("groups", "list", "--bootstrap", node.bootstrap)
    narrow = on_a_terminal(*arguments, columns=40)
    blocks = [
        [line.split(maxsplit=1) for line in block.splitlines()] for block in narrow.strip().split("\n\n")
    ]
    assert [block[0] for block in blocks] == [["GROUP", LONG], ["GROUP", "b"]]
    assert blocks[0][1] == ["STATE", "Stable"]
    wide = on_a_terminal(*arguments, columns=160).splitlines()
    assert wide[0].split("  ")[0] == "GROUP"
    assert wide[1].startswith(LONG)


@pytest.mark.process
def test_one_enormous_name_leaves_the_table_of_the_others_as_it_is(node: FakeNode) -> None:
    node.answers[ApiKey.LIST_GROUPS] = lambda *_: listed(
        ("a", "Stable"), ("x" * 30_000, "Empty"), ("z", "Empty")
    )
    shown = on_a_terminal("groups", "list", "--bootstrap", node.bootstrap, columns=80)
    table, _, record = shown.partition("\n\n")
    assert [line.split()[:2] for line in table.splitlines()] == [
        ["GROUP", "STATE"],
        ["a", "Stable"],
        ["z", "Empty"],
    ]
    assert record.splitlines()[:2] == [f"GROUP          {'x' * 30_000}", "STATE          Empty"]


def test_one_enormous_name_makes_no_other_line_of_a_pipe_long(node: FakeNode, groupkeeper: Command) -> None:
    node.answers[ApiKey.LIST_GROUPS] = lambda *_: listed(
        ("a", "Stable"), ("x" * 30_000, "Empty"), ("z", "Empty")
    )
    lines = groupkeeper("groups", "list", "--bootstrap", node.bootstrap).stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["STATE", "Stable", "Empty", "Empty"]
    assert sorted(map(len, lines))[2] < 200 < len(lines[2])


@pytest.mark.process
def test_every_value_of_a_description_is_on_a_line_of_its_own_where_it_is_narrow(node: FakeNode) -> None:
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: described(members=[member(LONG, {"orders": [0, 1]})])
    node.answers[ApiKey.OFFSET_FETCH] = lambda *_: committed(orders={0: 50})
    shown = on_a_terminal("groups", "describe", "g", "--bootstrap", node.bootstrap, columns=40)
    assert f"MEMBER      {LONG}\n" in shown
    assert "ASSIGNMENT  orders 0-1\n" in shown
    assert "OFFSET     50\n" in shown


def test_records_are_lines_of_name_and_value() -> None:
    text = format_rows_vertically(["A", "LONGER"], [["1", "2"], ["3", "4"]])
    assert text == "A       1\nLONGER  2\n\nA       3\nLONGER  4\n"


# --- watching ---


def test_watching_shows_it_again_after_each_pause_and_goes_on_after_errors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pauses: list[float] = []

    def show() -> None:
        if len(pauses) == 1:
            raise CommandError("not now")
        typer.echo(f"shown {len(pauses)}")

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        return len(pauses) == 3

    show_repeatedly(show, 2.5, wait=wait)
    assert pauses == [2.5, 2.5, 2.5]
    assert capsys.readouterr() == ("shown 0\nshown 2\n", "groupkeeper: not now\n")


def test_what_is_watched_stays_until_the_next_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    there: list[str] = []

    def show() -> None:
        typer.echo("first half")
        there.append(capsys.readouterr().out)
        typer.echo("second half")

    show_repeatedly(show, 1.0, wait=lambda _: len(there) == 2)
    assert there == ["", "first half\nsecond half\n"]


def test_what_is_not_watched_is_shown_once_and_fails_as_it_is() -> None:
    shown = []
    show_repeatedly(lambda: shown.append(1), None)
    assert shown == [1]

    def fail() -> None:
        raise CommandError("no")

    with pytest.raises(CommandError):
        show_repeatedly(fail, None)


@pytest.mark.process
def test_watching_ends_with_ctrl_c(node: FakeNode) -> None:
    node.answers[ApiKey.LIST_GROUPS] = lambda *_: listed(("g", "Empty"))
    command = [*installed(), "groups", "list", "--watch", "0.1", "--bootstrap", node.bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment({})) as running:
        wait_until(lambda: node.count(ApiKey.LIST_GROUPS) >= 3, what="three looks")
        running.send_signal(signal.SIGINT)
        output, _ = running.communicate(timeout=120)
    assert running.returncode == 0
    assert output.count("GROUP") >= 2


def test_ctrl_c_that_python_would_lose_ends_the_watching() -> None:
    """A KeyboardInterrupt that is raised in a destructor is printed and forgotten."""

    class PressesCtrlC:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    shown: list[int] = []

    def show() -> None:
        assert len(shown) < 3, "Ctrl-C was lost"
        shown.append(1)
        del [PressesCtrlC()][0]

    before = signal.getsignal(signal.SIGINT)
    show_repeatedly(show, 0.001)
    assert len(shown) == 1
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.process
def test_a_second_ctrl_c_ends_a_command_that_waits_for_a_cluster(node: FakeNode) -> None:
    asked, answering = threading.Event(), threading.Event()

    def wait(*_: object) -> None:
        asked.set()
        answering.wait()

    node.answers[ApiKey.LIST_GROUPS] = wait
    command = [*installed(), "groups", "list", "--watch", "60", "--bootstrap", node.bootstrap]
    try:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment({})) as running:
            asked.wait()

            def has_ended() -> (
                bool
            ):  # two signals that come at once are one, so it is sent until it was seen twice
                running.send_signal(signal.SIGINT)
                return running.poll() is not None

            wait_until(has_ended, what="the end of the command")
        assert running.returncode == -signal.SIGINT
    finally:
        answering.set()
