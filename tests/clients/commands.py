# SPDX-License-Identifier: Apache-2.0
"""How the process of a member is started, by its client library; what has to be built is built once for its sources."""

import hashlib
import shutil
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Final

from tests.kafka.jars import java_compiler, require_kafka_classpath
from tests.peers.fetching import UnavailableError, locked, require, run_command

MEMBERS: Final = Path(__file__).parent / "members"
JAVA: Final = ("java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
LOG_LEVEL: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel"
KEEPS_METADATA: Final = "-Dmetadata.recovery.strategy=none"
"""By default (KIP-899) a client that reaches no node forgets the topics, and then joins again, as they have changed."""
BUILD_TIMEOUT_S: Final = 600.0


def java(*properties: str) -> list[str]:
    """Java compiles the one file by itself. `properties` are Java's, as `-Dname=value`. Raises UnavailableError."""
    if missing := java_compiler():
        raise UnavailableError(missing)
    return [*JAVA, *properties, "-cp", require_kafka_classpath(), str(MEMBERS / "java" / "Member.java")]


def _python(module: str) -> list[str]:
    return [sys.executable, "-m", f"tests.clients.members.{module}"]


def _go(program: str) -> list[str]:
    require("go", "it fetches and builds the clients in Go")
    return [str(_go_programs() / program)]


@cache
def _go_programs() -> Path:
    def build(into: Path, sources: Path) -> None:
        # CGO would compile C for nothing.
        command = ["go", "build", "-o", f"{into}/", "./franz", "./sarama"]
        failure = "go cannot build the clients"
        run_command(command, failure, cwd=sources, env={"CGO_ENABLED": "0"}, timeout_s=BUILD_TIMEOUT_S)

    return _built("go", build)


def _node() -> list[str]:
    require("node", "it runs the client in JavaScript")
    return ["node", str(_node_modules() / "member.js")]


@cache
def _node_modules() -> Path:
    def install(into: Path, sources: Path) -> None:
        require("npm", "it fetches the client in JavaScript")
        shutil.copytree(sources, into)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        run_command(command, "npm cannot install the client", cwd=into, timeout_s=BUILD_TIMEOUT_S)

    return _built("node", install)


def _built(language: str, build: Callable[[Path, Path], None]) -> Path:
    """What `build(into, sources)` makes of the sources in a language, kept in the user's cache."""
    sources = MEMBERS / language
    digest = hashlib.sha256()
    for each in sorted(path for path in sources.rglob("*") if path.is_file()):
        digest.update(each.relative_to(sources).as_posix().encode() + b"\0" + each.read_bytes())
    with locked(f"members-{language}") as target:
        target.mkdir(exist_ok=True)
        found = target / digest.hexdigest()[:16]
        if not found.exists():
            unfinished = target / "unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            build(unfinished, sources)
            unfinished.rename(found)
    return found


COMMANDS: Final[dict[str, Callable[[], list[str]]]] = {
    "aiokafka": partial(_python, "aio"),
    "confluent-kafka": partial(_python, "confluent"),
    "franz-go": partial(_go, "franz"),
    "java": partial(java, f"{LOG_LEVEL}=warn", KEEPS_METADATA),
    "java-debug": partial(java, f"{LOG_LEVEL}=debug"),
    "kafka-python": partial(_python, "kafka_python"),
    "platformatic": _node,
    "sarama": partial(_go, "sarama"),
}
"""What to run, less the options, by the name of the client. Raises UnavailableError, which says what is missing."""
