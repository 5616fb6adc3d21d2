# SPDX-License-Identifier: Apache-2.0
"""Documented commands in a fresh clone, as a user types them who has an empty home and no C compiler.

Nothing is installed, and nothing cached but pip's packages. That the same targets compile where there is a compiler is
for `.ci/run`, which begins with them, and for tests/compiled/test_installed.py. One clone serves all tests, which come
in any order once `make run` has installed what it needs. Each gets its commands from tests/documented.py. What is
changed in a command is said where it is changed: ports, since others run beside us, and how much is measured.
"""

import json
import os
import re
import shutil
import signal
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from bench.browser import find_chromium
from bench.installed import PACKAGES, ROOT
from bench.ports import free_ports
from bench.screenshots import PICTURES
from coordinator.version import __version__
from tests.demo.told import TITLE, assert_facts_agree, assert_second_act
from tests.documented import ADDRESS
from tests.packaging.clone import Clone
from tests.packaging.test_install import NO_COMPILER, SLOWER
from tests.support.documented import Documented
from tests.support.missing import skip_or_fail
from tests.support.pages import PAGES, blocks
from tests.support.processes import ServerProcess
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]  # any of them may be the one that installs
NEED_SPARK = ("audit", "storage.columns")
FEW_TESTS = 'ARGS="tests/config -k environment"'
COUNT_CLASSES = """
import sys
from audit import session
assert session.CLASS_ARCHIVE.stat().st_size > 50 << 20
assert list(session.CLASS_ARCHIVE.parent.iterdir()) == [session.CLASS_ARCHIVE]
session.LOCAL_JAVA += f" -Xlog:class+load:file={sys.argv[1]}"
session.QUIET = "-Xlog:cds=off"  # the other would take the line above back
assert session.get_or_create_session("local[1]").sql("select 6 * 7").collect()[0][0] == 42
"""
QUERY = """
import sys
from audit.session import get_or_create_session
print("rows:", len(get_or_create_session("local[1]").sql(sys.argv[1]).collect()))
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


@dataclass
class Node:
    """What `make run` has started."""

    command: str
    process: ServerProcess
    bootstrap: str

    def printed(self) -> str:
        return self.process.log.read_text()


@pytest.fixture(scope="module", autouse=True)
def node(clone: Clone) -> Iterator[Node]:
    """`make run` with ports of our own, and stopped by Ctrl-C; before all else, as it is README's first command."""
    command = "make run"
    listen, metrics = free_ports(2)
    flags = f"--listen 127.0.0.1:{listen} --metrics 127.0.0.1:{metrics}"
    process = ServerProcess(
        [*command.split(), f"ARGS={flags}"],
        clone.tree.parent / "make-run.log",
        env=clone.environment,
        cwd=clone.tree,
    )
    node = Node(command, process, f"127.0.0.1:{listen}")
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


def test_make_run_installs_and_serves_and_says_where(
    documented: Documented, clone: Clone, node: Node
) -> None:
    run, version = documented.commands
    assert documented.line(run) == node.command
    assert "creating .venv with Python 3." in node.printed()
    assert f'"event":"serving","kafka":"{node.bootstrap}"' in node.printed()
    assert clone.run(documented.line(version), PATH=with_venv(clone)) == f"groupkeeper {__version__}\n"


def with_venv(clone: Clone) -> str:
    """The PATH of somebody who has activated the clone's .venv."""
    return f"{clone.tree / '.venv' / 'bin'}{os.pathsep}{clone.environment['PATH']}"


def test_make_help_lists_the_targets(documented: Documented, clone: Clone) -> None:
    (command,) = documented.commands
    listed = set(re.findall(r"^  make ([a-z-]+)", clone.run(documented.line(command)), re.MULTILINE))
    assert listed >= {"run", "install", "test", "demo", "docs"}


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


DEMO: Final = "make demo"


@pytest.fixture(scope="module")
def demo(clone: Clone, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `make demo` prints; it also installs a Kafka client. It leaves nothing behind."""
    temporary = tmp_path_factory.mktemp("demo")  # short, as the paths of sockets have to be
    printed = clone.run(DEMO, TMPDIR=str(temporary))
    assert list(temporary.iterdir()) == []
    return printed[printed.index(TITLE) :]


def test_make_demo_tells_both_acts(documented: Documented, demo: str) -> None:
    """The second one brings Kafka's jars from Maven's repository into the empty cache."""
    (command,) = documented.commands
    assert documented.line(command) == DEMO
    assert_facts_agree(demo)
    if "Not played: " in demo:
        skip_or_fail(demo.partition("Not played: ")[2].strip())
    assert_second_act(demo)


@pytest.fixture(scope="module")
def committed(clone: Clone, node: Node, demo: str) -> None:
    """README's program has run, with the client that the demo has installed."""
    (code,) = blocks(PAGES["README.md"], "python")
    assert ADDRESS in code
    (clone.tree.parent / "look.py").write_text(code.replace(ADDRESS, node.bootstrap))
    assert demo
    for _ in range(2):
        printed = clone.run(".venv/bin/python ../look.py")
    assert "assigned: [0, 1, 2," in printed
    assert "committed: 42" in printed


@pytest.mark.usefixtures("committed")
def test_the_commands_about_groups_show_what_was_committed(
    documented: Documented, clone: Clone, node: Node
) -> None:
    listed, described, reset = (
        clone.run(documented.line(each), GROUPKEEPER_BOOTSTRAP=node.bootstrap) for each in documented.commands
    )
    assert "orders" in listed
    assert "42" in described
    assert ["orders", "work", "0", "42", "7"] in [line.split() for line in reset.splitlines()]


@pytest.mark.usefixtures("committed")
def test_the_audit_is_installed_and_finds_nothing_wrong(
    documented: Documented, clone: Clone, node: Node
) -> None:
    """The tables of the second audit can be queried as the page says."""
    install, audit, installed_audit = documented.commands
    clone.run(documented.line(install))
    require_java()
    clone.run(documented.line(audit, {ADDRESS: node.bootstrap}))
    assert_clean(clone.tree / "audit-results")
    out = clone.tree / "audit-of-a-host"
    places = {"/var/lib/groupkeeper-audit": out, "--log-dirs /var/lib/groupkeeper": "--log-dirs data"}
    clone.run(documented.line(installed_audit, {**places, ADDRESS: node.bootstrap}), PATH=with_venv(clone))
    assert_clean(out)
    (query,) = blocks(PAGES["docs/audit.md"], "sql")
    (clone.tree.parent / "query.py").write_text(QUERY)
    shown = clone.run(
        f"{sys.executable} ../query.py '{query.replace('/var/lib/groupkeeper-audit', str(out))}'"
    )
    assert "rows: 1\n" in shown


def assert_clean(out: Path) -> None:
    """An audit has found nothing wrong with the one group."""
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["findings"], summary["groups"]) == ([], 1)
    assert (out / "report.html").exists()


def require_java() -> None:
    """Skip, or in CI fail, the test where no audit can run."""
    if shutil.which("java") is None:
        skip_or_fail("the audit needs Java 17 or later, and there is none")


def test_java_takes_an_audits_classes_from_the_archive(documented: Documented, clone: Clone) -> None:
    """The archive is what `make install-audit` makes last, and what the command makes again."""
    (command,) = documented.commands
    clone.run("make install-audit")
    require_java()
    (archive,) = (clone.tree / ".venv/share/groupkeeper").glob("*.jsa")
    archive.unlink()
    clone.run(documented.line(command))
    (clone.tree.parent / "count_classes.py").write_text(COUNT_CLASSES)
    clone.run(".venv/bin/python ../count_classes.py ../loaded")
    loaded = (clone.tree.parent / "loaded").read_text().splitlines()
    archived = [line for line in loaded if "org.apache.spark" in line and "shared objects file (top)" in line]
    assert len(archived) > 1_000


def test_the_audit_is_packed_for_a_cluster(documented: Documented, clone: Clone) -> None:
    (command,) = documented.commands
    clone.run(documented.line(command))
    packed = {path.name for path in (clone.tree / "dist").glob("*.zip")}
    assert packed == {"groupkeeper-audit.zip", "groupkeeper-audit-libraries.zip"}


def test_make_runs_tests_of_each_tier(documented: Documented, clone: Clone) -> None:
    """A few: what all of them say is for `.ci/run`."""
    for command in documented.commands:
        assert " passed" in clone.run(f"{documented.line(command)} {FEW_TESTS}")


def test_make_lint_and_format_find_nothing(documented: Documented, clone: Clone) -> None:
    lint, format_ = documented.commands
    assert "Success: no issues found" in clone.run(documented.line(lint))
    before = changes(clone)
    clone.run(documented.line(format_))
    assert changes(clone) == before


def changes(clone: Clone) -> str:
    """What differs in the clone's files from its last commit."""
    return clone.run("git diff")


def test_make_simulate_runs_a_seed(documented: Documented, clone: Clone) -> None:
    (command,) = documented.commands
    assert "{'commits': " in clone.run(f"{documented.line(command)} SEED=7 SIMULATED=20")


def test_what_is_generated_is_generated_again(documented: Documented, clone: Clone) -> None:
    """The codecs, and the locks with the versions that they pin; and then newer versions, which are put back."""
    codecs, lock, upgrade = documented.commands
    before = changes(clone)
    clone.run(documented.line(codecs))
    assert changes(clone) == before
    locks = {path: path.read_text() for path in clone.tree.glob("requirements*.lock")}
    try:
        clone.run(documented.line(lock))
        assert [pins(path.read_text()) for path in locks] == [pins(text) for text in locks.values()]
        clone.run(documented.line(upgrade))
        assert all(pins(path.read_text()) for path in locks)
    finally:
        for path, text in locks.items():
            path.write_text(text)


def pins(lock: str) -> list[str]:
    """The versions in a lock. Its hashes are those of the files that a registry has today."""
    return re.findall(r"^[\w.-]+==\S+", lock, re.MULTILINE)


def test_pip_installs_the_client_of_the_examples(documented: Documented, clone: Clone) -> None:
    (command,) = documented.commands
    clone.run("python3 -m venv ../examples")
    there = clone.tree.parent / "examples" / "bin"
    clone.run(documented.line(command), PATH=f"{there}{os.pathsep}{clone.environment['PATH']}")
    clone.run(f"{there}/python -c 'import confluent_kafka'")


def test_pipx_and_uv_install_the_command(documented: Documented, clone: Clone) -> None:
    pipx, uv = documented.commands
    clone.run("make install-dev")  # it has uv
    clone.run("python3 -m venv ../tools && ../tools/bin/pip install --quiet pipx")
    tools = f"{clone.tree.parent / 'tools' / 'bin'}{os.pathsep}{with_venv(clone)}"
    for name, command in (("pipx", pipx), ("uv", uv)):
        home = clone.tree.parent / f"home-of-{name}"
        clone.run(documented.line(command), PATH=tools, HOME=str(home))
        said = clone.run(f"{home}/.local/bin/groupkeeper --version")
        assert said == f"groupkeeper {__version__}\n"


def test_what_the_page_types_for_systemd_installs_it(documented: Documented, clone: Clone) -> None:
    install, install_audit, again = documented.commands
    opt = clone.tree.parent / "opt"
    clone.run(documented.line(install, {"REPOSITORY": clone.tree, "/opt/": f"{opt}/"}))
    assert clone.run(f"{opt}/groupkeeper/.venv/bin/groupkeeper --version") == f"groupkeeper {__version__}\n"
    clone.run(
        documented.line(install_audit, {"/opt/groupkeeper": clone.tree})
    )  # others have done it, perhaps
    clone.run(f"cd {opt}/groupkeeper && {documented.line(again)}")


def test_a_new_version_is_installed_beside_the_old_one_and_again(
    documented: Documented, clone: Clone
) -> None:
    """Again with another Python, which here is the same one."""
    cloning, install, remove, choose = documented.commands
    new = clone.tree.parent / "opt" / "groupkeeper-NEW"
    clone.run(documented.line(cloning, {"REPOSITORY": clone.tree, "/opt/groupkeeper-NEW": new}))
    clone.run(documented.line(install, {"/opt/groupkeeper-NEW": new}))
    clone.run(f"cd {new} && {documented.line(remove)}")
    assert not (new / ".venv").exists()
    python = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    said = clone.run(f"cd {new} && {documented.line(choose, {'...': python})}")
    assert f", {python}\n" in said
    assert clone.run(f"{new}/.venv/bin/groupkeeper --version") == f"groupkeeper {__version__}\n"


SHORT: Final = "--runs 1 --duration 0.2 --warmup 0.2 --only heartbeat"


def test_make_bench_measures(documented: Documented, clone: Clone, node: Node) -> None:
    """One scenario for a fraction of a second, on our two servers: that a Kafka takes part is for tests/bench."""
    compare, compare_all, beside = documented.commands
    ours = {"--runs 3 --duration 3": SHORT, "kafka,": ""}
    assert "heartbeat" in clone.run(documented.line(compare, ours))
    written = {"--write": f"--servers os {SHORT} --write ../RESULTS.md"}
    assert "heartbeat" in clone.run(documented.line(compare_all, written))
    assert "| heartbeat |" in (clone.tree.parent / "RESULTS.md").read_text()
    small = {
        "commit heartbeat": "commit heartbeat --groups 4 --requests 100",
        ADDRESS: node.bootstrap,
        "'groupkeeper serve'": f"'[g]roupkeeper serve .*{node.bootstrap}'",  # others run beside us
    }
    lines = clone.run(documented.line(beside, small)).splitlines()
    assert [line.split()[0] for line in lines[-2:]] == ["commit", "heartbeat"]


def test_make_bench_says_what_there_is_and_counts_code(documented: Documented, clone: Clone) -> None:
    describe, describe_compare, code, figures = documented.commands
    assert "usage: python -m bench" in clone.run(documented.line(describe))
    assert "--restart-groups" in clone.run(documented.line(describe_compare))
    assert "coordinator: files, lines" in clone.run(documented.line(code))
    before = changes(clone)
    clone.run(documented.line(figures))
    assert changes(clone) == before


def test_make_bench_audits_a_large_log(documented: Documented, clone: Clone) -> None:
    """Of 20,000 records instead of ten million."""
    (command,) = documented.commands
    require_java()
    assert "20,000 records" in clone.run(with_flags(documented, command, "--records 20000 --partitions 2"))


def with_flags(documented: Documented, command: str, flags: str) -> str:
    """A command `make bench ARGS=...` with more flags."""
    _, _, name = command.partition("ARGS=")
    return documented.line(command, {f"ARGS={name}": f'ARGS="{name.strip(chr(34))} {flags}"'})


SMALL: Final[Mapping[str, str]] = {
    "compaction": "--bytes 1M --groups 10 --seconds 0.2",
    "attack": "list_groups --groups 20 --topics 5 --connections 1 --seconds 0.3",
    "browsing": "--groups 300 --rounds 2",
    "closing": "--connections 200 --rounds 1",
    "forwarding": "--seconds 0.3 --runs 1 --requests 20 --records 1000",
    "failover": "--rounds 1",
    "polling": "--groups 60 --rounds 1",
}
"""Flags with which a measurement takes some seconds."""


def small(documented: Documented, command: str) -> str:
    """A command `make bench ARGS=...` that takes some seconds."""
    return with_flags(documented, command, SMALL[command.partition("ARGS=")[2]])


def test_make_bench_troubles_a_node(documented: Documented, clone: Clone) -> None:
    compaction, attack, browsing, closing = documented.commands
    assert "compacted 1 times" in clone.run(small(documented, compaction))
    assert "list_groups " in clone.run(small(documented, attack))
    assert "| the partitions |" in clone.run(small(documented, browsing))
    assert "uvloop" in clone.run(small(documented, closing))


@pytest.mark.kafka
def test_make_bench_puts_a_gateway_before_a_kafka(documented: Documented, clone: Clone) -> None:
    attack, forwarding, failover, polling = documented.commands
    if shutil.which("haproxy") is None:
        skip_or_fail("haproxy is not installed")
    # The gateway's memory after so short an attack may be a fault, or not.
    short = with_flags(documented, attack, "brief halves --seconds 3 --after 1")
    assert "errors: none" in clone.run(f"{short} || true")
    assert "through the gateway" in clone.run(small(documented, forwarding))
    assert "The process that stands by has" in clone.run(small(documented, failover))
    assert "had taken over afterwards: 0." in clone.run(small(documented, polling))


def test_make_screenshots_takes_the_pictures_of_the_pages(documented: Documented, clone: Clone) -> None:
    (command,) = documented.commands
    if find_chromium() is None:
        skip_or_fail("there is no Chromium to take pictures with")
    images = clone.tree / "docs" / "images"
    for picture in images.glob("*.png"):
        picture.unlink()
    clone.run(documented.line(command))
    names = {f"{picture.name}.png" for pictures in PICTURES.values() for picture in pictures}
    assert {path.name for path in images.glob("*.png")} == names


def test_make_docs_builds_the_site(documented: Documented, clone: Clone) -> None:
    (command,) = documented.commands
    clone.run(documented.line(command))
    assert "Groupkeeper coordinates Kafka consumer groups" in (clone.tree / "site" / "index.html").read_text()
