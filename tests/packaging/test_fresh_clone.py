# SPDX-License-Identifier: Apache-2.0
"""README's commands in a fresh clone, as a user types them who has an empty home and no C compiler.

Nothing is installed, and nothing cached but pip's packages. That the same targets compile where there is a compiler is
for `.ci/run`, which begins with them, and for tests/compiled/test_installed.py. One clone serves all tests, which come
in any order once `make run` has installed what it needs. Each takes its commands from README, by its own name in the
table of tests/test_readme.py, which also says what runs the others. What is changed in a command is said where it is
changed: ports, since others run beside us, and how much is measured.
"""

import json
import os
import shutil
import signal
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from bench.installed import PACKAGES, ROOT
from bench.ports import free_ports
from coordinator.version import __version__
from tests.demo.told import TITLE, assert_facts_agree, assert_second_act
from tests.packaging.clone import Clone
from tests.packaging.test_install import NO_COMPILER, SLOWER
from tests.support.missing import skip_or_fail
from tests.support.pages import blocks, commands
from tests.support.processes import ServerProcess
from tests.support.waiting import wait_until
from tests.test_readme import ADDRESS, README, RUN_BY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]  # any of them may be the one that installs
NEED_SPARK = ("audit", "storage.columns")
HERE = "tests/packaging/test_fresh_clone.py"
COUNT_CLASSES = """
import sys
from audit import session
assert session.CLASS_ARCHIVE.stat().st_size > 50 << 20
assert list(session.CLASS_ARCHIVE.parent.iterdir()) == [session.CLASS_ARCHIVE]
session.LOCAL_JAVA += f" -Xlog:class+load:file={sys.argv[1]}"
session.QUIET = "-Xlog:cds=off"  # the other would take the line above back
assert session.get_or_create_session("local[1]").sql("select 6 * 7").collect()[0][0] == 42
"""
INSTALLING_S = 1200.0


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """Gone at the end: it has more than a gigabyte by then, and pytest keeps what three runs have left."""
    work = tmp_path_factory.mktemp("fresh")
    clone = Clone(ROOT, work)
    clone.environment["CC"] = "/bin/false"
    yield clone
    shutil.rmtree(work)


def commands_of(test: str) -> list[str]:
    """README's commands that a test of this file runs."""
    found = [command for command, name in RUN_BY.items() if name == f"{HERE}::{test}"]
    assert found, f"README has no command for {test}"
    return found


@pytest.fixture
def typed(request: pytest.FixtureRequest) -> list[str]:
    """The commands of the test that asks."""
    return commands_of(request.node.name)


@dataclass
class Node:
    """What `make run` has started."""

    process: ServerProcess
    bootstrap: str

    def printed(self) -> str:
        return self.process.log.read_text()


@pytest.fixture(scope="module", autouse=True)
def node(clone: Clone) -> Iterator[Node]:
    """`make run` with ports of our own, and stopped by Ctrl-C; before all else, as it is README's first command."""
    (command,) = commands_of("test_make_run_installs_and_serves_and_says_where")
    listen, metrics = free_ports(2)
    flags = f"--listen 127.0.0.1:{listen} --metrics 127.0.0.1:{metrics}"
    process = ServerProcess(
        [*command.split(), f"ARGS={flags}"],
        clone.tree.parent / "make-run.log",
        env=clone.environment,
        cwd=clone.tree,
    )
    node = Node(process, f"127.0.0.1:{listen}")
    try:
        wait_until(
            lambda: process.exit_status is not None or is_ready(metrics),
            INSTALLING_S,
            what=lambda: f"{command} to serve:\n{node.printed()}",
            interval_s=0.2,
        )
        process.assert_running()
        yield node
        os.killpg(process.pid, signal.SIGINT)
        wait_until(lambda: process.exit_status is not None, what="the node to stop")
        assert '"event":"stopped"' in node.printed()
    finally:
        if process.exit_status is None:
            os.killpg(process.pid, signal.SIGKILL)  # make, and what it has started
        process.kill9()


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_make_run_installs_and_serves_and_says_where(clone: Clone, node: Node) -> None:
    assert "creating .venv with Python 3." in node.printed()
    assert f'"event":"serving","kafka":"{node.bootstrap}"' in node.printed()
    assert clone.run(".venv/bin/groupkeeper --version") == f"groupkeeper {__version__}\n"


def test_without_a_compiler_one_line_says_what_that_means(clone: Clone, node: Node) -> None:
    assert node.printed().count("not compiled, as .venv/compile.log says") == 1
    compile_log = (clone.tree / ".venv" / "compile.log").read_text()
    assert [line.strip() for line in compile_log.splitlines() if "not compiled" in line] == [
        SLOWER + NO_COMPILER
    ]


def test_no_module_needs_what_make_run_does_not_install(clone: Clone) -> None:
    """Spark's packages come with `make install-audit`."""
    (clone.tree.parent / "everything.py").write_text(
        f"""
import importlib, pkgutil
for package in {tuple(package for package in PACKAGES if package not in NEED_SPARK)}:
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if not module.name.endswith("__main__") and not module.name.startswith({NEED_SPARK}):
            importlib.import_module(module.name)
"""
    )
    clone.run("cd .. && groupkeeper/.venv/bin/python -P everything.py")


@pytest.fixture(scope="module")
def demo(clone: Clone, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `make demo` prints; it also installs a Kafka client. It leaves nothing behind."""
    (command,) = commands_of("test_make_demo_tells_both_acts")
    temporary = tmp_path_factory.mktemp("demo")  # short, as the paths of sockets have to be
    printed = clone.run(command, TMPDIR=str(temporary))
    assert list(temporary.iterdir()) == []
    return printed[printed.index(TITLE) :]


def test_make_demo_tells_both_acts(demo: str) -> None:
    """The second one brings Kafka's jars from Maven's repository into the empty cache."""
    assert_facts_agree(demo)
    if "Not played: " in demo:
        skip_or_fail(demo.partition("Not played: ")[2].strip())
    assert_second_act(demo)


@pytest.fixture(scope="module")
def committed(clone: Clone, node: Node, demo: str) -> None:
    """README's program has run, with the client that the demo has installed."""
    (code,) = blocks(README, "python")
    assert ADDRESS in code
    (clone.tree.parent / "look.py").write_text(code.replace(ADDRESS, node.bootstrap))
    assert demo
    for _ in range(2):
        printed = clone.run(".venv/bin/python ../look.py")
    assert "assigned: [0, 1, 2," in printed
    assert "committed: 42" in printed


@pytest.mark.usefixtures("committed")
def test_the_commands_about_groups_show_what_was_committed(
    clone: Clone, node: Node, typed: list[str]
) -> None:
    listed, described, reset = (clone.run(each, GROUPKEEPER_BOOTSTRAP=node.bootstrap) for each in typed)
    assert "orders" in listed
    assert "42" in described
    assert ["orders", "work", "0", "42", "7"] in [line.split() for line in reset.splitlines()]


@pytest.mark.usefixtures("committed")
def test_the_audit_is_installed_and_finds_nothing_wrong(clone: Clone, node: Node, typed: list[str]) -> None:
    install, audit = typed
    clone.run(install)
    if shutil.which("java") is None:
        skip_or_fail("the audit needs Java 17 or later, and there is none")
    clone.run(audit.replace(ADDRESS, node.bootstrap))
    summary = json.loads((clone.tree / "audit-results" / "summary.json").read_text())
    assert (summary["findings"], summary["groups"]) == ([], 1)
    assert (clone.tree / "audit-results" / "report.html").exists()


def test_java_takes_an_audits_classes_from_the_archive(clone: Clone) -> None:
    """The archive is what `make install-audit` makes last."""
    clone.run("make install-audit")
    if shutil.which("java") is None:
        skip_or_fail("the audit needs Java 17 or later, and there is none")
    (clone.tree.parent / "count_classes.py").write_text(COUNT_CLASSES)
    clone.run(".venv/bin/python ../count_classes.py ../loaded")
    loaded = (clone.tree.parent / "loaded").read_text().splitlines()
    archived = [line for line in loaded if "org.apache.spark" in line and "shared objects file (top)" in line]
    assert len(archived) > 1_000


def test_make_test_runs_tests(clone: Clone, typed: list[str]) -> None:
    """A few: what all of them say is for `.ci/run`."""
    (command,) = typed
    assert " passed" in clone.run(f'{command} ARGS="tests/config -k environment"')


def test_make_bench_measures(clone: Clone, typed: list[str]) -> None:
    """One scenario for a fraction of a second, on our two servers: that a Kafka takes part is for tests/bench."""
    (command,) = typed
    short = command.replace("--runs 3 --duration 3", "--runs 1 --duration 0.2 --warmup 0.2 --only heartbeat")
    assert short != command
    assert "heartbeat" in clone.run(short.replace("kafka,", ""))


def test_make_bench_audits_a_large_log(clone: Clone, typed: list[str]) -> None:
    """Of 20,000 records instead of ten million."""
    (command,) = typed
    if shutil.which("java") is None:
        skip_or_fail("the audit needs Java 17 or later, and there is none")
    assert "20,000 records" in clone.run(
        f'{command.replace("=audit", "=")}"audit --records 20000 --partitions 2"'
    )


def test_what_the_page_types_for_systemd_installs_it(clone: Clone) -> None:
    """Both halves of the line in docs/installing.md; what the second one makes others have made perhaps."""
    page = (ROOT / "docs" / "installing.md").read_text()
    (line,) = (each for each in commands(page) if each.startswith("git clone"))
    cloning, installing = line.split(" && ")
    clone.run(cloning.replace("REPOSITORY", str(clone.tree)).replace("/opt/", "../opt/"))
    assert (clone.tree.parent / "opt/groupkeeper/Makefile").exists()
    clone.run(installing.replace("/opt/groupkeeper", str(clone.tree)))
    assert clone.run(".venv/bin/groupkeeper --version") == f"groupkeeper {__version__}\n"


def test_make_docs_builds_the_site(clone: Clone, typed: list[str]) -> None:
    (command,) = typed
    clone.run(command)
    assert "Groupkeeper coordinates Kafka consumer groups" in (clone.tree / "site" / "index.html").read_text()
