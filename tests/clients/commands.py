# SPDX-License-Identifier: Apache-2.0
"""How the process of a member is started, by its client library; what has to be built is built once for its sources."""

import shutil
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Final

from tests.kafka.jars import java_compiler, require_kafka_classpath
from tests.peers.fetching import (
    BUILD_TIMEOUT_S,
    UnavailableError,
    build_in_go,
    built_once,
    require,
    run_command,
)

MEMBERS: Final = Path(__file__).parent / "members"
JAVA: Final = ("java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
LOG_LEVEL: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel"
KEEPS_METADATA: Final = "-Dmetadata.recovery.strategy=none"
"""By default (KIP-899) a client that reaches no node forgets the topics, and then joins again, as they have changed."""


def java_program(source: Path, *properties: str) -> list[str]:
    """Java compiles the one file by itself. `properties` are Java's, as `-Dname=value`. Raises UnavailableError."""
    if missing := java_compiler():
        raise UnavailableError(missing)
    return [*JAVA, *properties, "-cp", require_kafka_classpath(), str(source)]


def _java(*properties: str) -> list[str]:
    return java_program(MEMBERS / "java" / "Member.java", *properties)


def _python(module: str) -> list[str]:
    return [sys.executable, "-m", f"tests.clients.members.{module}"]


def _go(program: str) -> list[str]:
    return [str(_go_programs() / program)]


@cache
def _go_programs() -> Path:
    sources = MEMBERS / "go"
    return built_once(
        "members-go", _files(sources), lambda into: build_in_go(sources, into, "./franz", "./sarama")
    )


def _node() -> list[str]:
    require("node", "it runs the client in JavaScript")
    return ["node", str(_node_modules() / "member.js")]


@cache
def _node_modules() -> Path:
    sources = MEMBERS / "node"

    def install(into: Path) -> None:
        require("npm", "it fetches the client in JavaScript")
        shutil.copytree(sources, into, dirs_exist_ok=True)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        run_command(command, "npm cannot install the client", cwd=into, timeout_s=BUILD_TIMEOUT_S)

    return built_once("members-node", _files(sources), install)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


COMMANDS: Final[dict[str, Callable[[], list[str]]]] = {
    "aiokafka": partial(_python, "aio"),
    "confluent-kafka": partial(_python, "confluent"),
    "franz-go": partial(_go, "franz"),
    "java": partial(_java, f"{LOG_LEVEL}=warn", KEEPS_METADATA),
    "java-debug": partial(_java, f"{LOG_LEVEL}=debug"),
    "kafka-python": partial(_python, "kafka_python"),
    "platformatic": _node,
    "sarama": partial(_go, "sarama"),
}
"""What to run, less the options, by the name of the client. Raises UnavailableError, which says what is missing."""
