# SPDX-License-Identifier: Apache-2.0
"""The Dockerfile: its context has what it copies, and what its stages make serves and audits.

They are made of a fresh clone, in the environment of a user with an empty home.
"""

import json
import os
import re
import shutil
import site
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from audit.cli import parser
from bench.installed import ROOT
from bench.ports import free_ports
from tests.packaging.clone import Clone
from tests.packaging.image import Stage, copy_context, play, stages
from tests.support.missing import require_compiler, skip_or_fail
from tests.support.processes import ServerProcess
from tests.support.waiting import wait_until

DOCKERFILE = ROOT / "Dockerfile"
STAGES = stages(DOCKERFILE)
SERVER, AUDIT = STAGES["server"], STAGES["audit"]
COMPILER = '#!/bin/sh\nexec cc "$@" -O0\n'
"""Takes half as long: how fast the result is, is not asked here. The last -O counts."""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    return Clone(ROOT, tmp_path_factory.mktemp("fresh"))


@pytest.fixture(scope="module")
def context(clone: Clone, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a builder is sent of the clone."""
    to = tmp_path_factory.mktemp("context")
    copy_context(clone.tree, to)
    return to


def needed_by(stage: Stage) -> list[Stage]:
    """The stage, and all that its bases and copies come from."""
    sources = [stage.base, *(source for source, _, _ in stage.copies() if source is not None)]
    return [stage, *(found for name in sources if name in STAGES for found in needed_by(STAGES[name]))]


def test_the_context_has_whatever_is_copied_from_it(context: Path) -> None:
    copied = {
        source
        for stage in STAGES.values()
        for from_, sources, _ in stage.copies()
        if from_ is None
        for source in sources
    }
    assert copied >= {"audit", "coordinator", "protocol", "storage", "hatch_build.py", "requirements.lock"}
    assert copied == {path.name for path in context.iterdir()}


def test_the_server_is_what_is_built_by_default_and_has_no_spark() -> None:
    assert list(STAGES.values())[-1] is SERVER
    installs = [value for stage in needed_by(SERVER) for value in stage.values("RUN") if "install" in value]
    assert any("requirements.lock" in value for value in installs)
    assert not any("requirements-audit.lock" in value or "jre" in value for value in installs)


def test_the_audit_stage_has_what_the_audit_needs() -> None:
    installs = [value for stage in needed_by(AUDIT) for value in stage.values("RUN") if "install" in value]
    assert any("--require-hashes -r requirements-audit.lock" in value for value in installs)
    assert any(re.search(r"\bapt-get install .*-jre-headless\b", value) for value in installs)
    (command,) = AUDIT.values("CMD")
    name, *flags = json.loads(command)
    taken = parser("groupkeeper audit").parse_args(flags)
    assert (name, taken.log_dirs, taken.out) == ("audit", "/data", "/audit")
    assert AUDIT.values("VOLUME") == ["/audit"]


def test_both_run_as_the_same_user_who_is_not_root() -> None:
    assert SERVER.values("USER") == AUDIT.values("USER") == ["10001:10001"]


def test_the_cron_job_takes_the_image_that_the_dockerfile_tells_to_build() -> None:
    job = (ROOT / "deploy" / "kubernetes" / "audit-cronjob.yaml").read_text()
    (image,) = re.findall(r"^ +image: (\S+)$", job, re.MULTILINE)
    assert f"docker build -t {image} --target audit ." in DOCKERFILE.read_text()
    assert f"docker build -t {image} --target audit ." in job


@pytest.fixture(scope="module")
def built(clone: Clone, context: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build stage, played with the context alone by the Dockerfile's own steps. Returns the root directory."""
    require_compiler()
    root = tmp_path_factory.mktemp("image")
    compiler = root / "cc"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    play(STAGES["build"], context, root, clone.environment | {"CC": str(compiler)})
    return root


@pytest.fixture(scope="module")
def serving(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The server image's command and environment, but for ports and places. Yields that environment."""
    listen, metrics = free_ports(2)
    data = tmp_path_factory.mktemp("data")
    environment = image_environment(SERVER, built) | {
        "GROUPKEEPER_LISTEN": f"127.0.0.1:{listen}",
        "GROUPKEEPER_ADVERTISE": f"localhost:{listen}",
        "GROUPKEEPER_METRICS_LISTEN": f"127.0.0.1:{metrics}",
        "GROUPKEEPER_DATA_DIR": str(data),
    }
    (command,) = SERVER.values("CMD")
    log = data.parent / "image.log"
    arguments = [str(built / "opt/groupkeeper/bin/groupkeeper"), *json.loads(command)]
    process = ServerProcess(arguments, log, env=environment, cwd=data)
    try:
        wait_until(
            lambda: process.exit_status is not None or healthy(environment) == 0,
            120.0,
            what=lambda: f"the image's health check to pass:\n{log.read_text()}",
        )
        process.assert_running()
        commit(environment["GROUPKEEPER_ADVERTISE"])
        yield environment
    finally:
        process.kill9()


def commit(address: str) -> None:
    """What the log is to hold: an offset of the group `orders`."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic("work", 2)])["work"].result(120)
    consumer = Consumer({"bootstrap.servers": address, "group.id": "orders"})
    consumer.commit(offsets=[TopicPartition("work", 1, 42)], asynchronous=False)
    consumer.close()


def image_environment(stage: Stage, root: Path) -> dict[str, str]:
    """What a process in the image finds, with places below `root`."""
    found = {name: value for each in reversed(needed_by(stage)) for name, value in each.environment().items()}
    path = f"{root}/opt/groupkeeper/bin:{os.environ['PATH']}"
    return {name: value for name, value in found.items() if not name.startswith("PIP_")} | {"PATH": path}


def healthy(environment: dict[str, str]) -> int:
    """The exit code of the image's health check."""
    (check,) = SERVER.values("HEALTHCHECK")
    command = json.loads(check[check.index("[") :])
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_the_image_holds_is_compiled_and_serves(built: Path, serving: dict[str, str]) -> None:
    address = serving["GROUPKEEPER_ADVERTISE"]
    bin_ = built / "opt/groupkeeper/bin"
    said = [
        subprocess.run(
            [bin_ / "groupkeeper", *arguments], env=serving, capture_output=True, text=True, check=True
        ).stdout
        for arguments in (["--version"], ["groups", "list", "--bootstrap", address])
    ]
    assert said[0].endswith("(compiled)\n")
    assert "orders" in said[1]
    look = "import importlib.util as u; print([n for n in ('pyspark', 'pyarrow', 'pip', 'audit') if u.find_spec(n)])"
    found = subprocess.run(
        [bin_ / "python", "-c", look], env=serving, capture_output=True, text=True, check=True
    )
    assert found.stdout == "['audit']\n"
    # without Spark the audit is there, and says what it lacks
    without = subprocess.run(
        [bin_ / "groupkeeper", "audit", "--log-dirs", serving["GROUPKEEPER_DATA_DIR"], "--out", "out"],
        env=serving,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (without.returncode, without.stderr.count("\n")) == (2, 1)
    assert "make install-audit" in without.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_wheel_of_the_image_audits_the_log_that_it_wrote(
    built: Path, serving: dict[str, str], tmp_path: Path
) -> None:
    """With the Spark of this environment: to install another one takes half a gigabyte and minutes."""
    if shutil.which("java") is None:
        skip_or_fail("the audit needs Java 17 or later, and there is none")
    subprocess.run([built / "bin/python", "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (ours,) = (built / "opt/groupkeeper").glob("lib/python*/site-packages")
    (packages / "image.pth").write_text("\n".join([str(ours), *site.getsitepackages()]))
    (tmp_path / "work").mkdir()
    command = [tmp_path / "venv/bin/python", built / "opt/groupkeeper/bin/groupkeeper"]
    environment = image_environment(AUDIT, built)
    assert (
        "--log-dirs"
        in subprocess.run(
            [*command, "audit", "--help"], env=environment, capture_output=True, text=True, check=True
        ).stdout
    )
    (line,) = AUDIT.values("CMD")
    places = {"/data": serving["GROUPKEEPER_DATA_DIR"], "/audit": str(tmp_path / "out")}
    arguments = [places.get(word, word) for word in json.loads(line)]
    against = ["--against", serving["GROUPKEEPER_ADVERTISE"]]
    audited = subprocess.run(
        [*command, *arguments, *against],
        env=environment,
        cwd=tmp_path / "work",
        capture_output=True,
        text=True,
        check=False,
    )
    assert audited.returncode == 0, audited.stdout + audited.stderr
    assert (tmp_path / "out" / "report.html").exists()
