# SPDX-License-Identifier: Apache-2.0
"""How each client library's process is started."""

import hashlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.kafka.jars import java_compiler, require_kafka_classpath
from tests.peers.fetching import UnavailableError, locked, require, run_command
from tests.peers.franz_go import MODULE

HERE: Final = Path(__file__).parent
JAVA: Final = ("java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
QUIET: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
BUILD_TIMEOUT_S: Final = 600.0


def command(library: str) -> list[str]:
    """What to run, less the options. Raises UnavailableError, which says what is missing."""
    return COMMANDS[library]()


def _python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"tests.gateway.clients.{module}"]


def _java() -> list[str]:
    """Java compiles the one file by itself."""
    if missing := java_compiler():
        raise UnavailableError(missing)
    return [*JAVA, QUIET, "-cp", require_kafka_classpath(), str(HERE / "java" / "Client.java")]


def _go() -> list[str]:
    """Built once for its sources, with the modules that the peers' tests pin."""
    require("go", "it fetches and builds franz-go")
    sources = (MODULE / "go.mod", MODULE / "go.sum", HERE / "go" / "main.go")
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in sources)).hexdigest()[:16]
    with locked("franz-go-client") as target:
        target.mkdir(exist_ok=True)
        binary = target / f"client-{digest}"
        if not binary.exists():
            for each in sources:
                shutil.copyfile(each, target / each.name)
            made = target / "client"
            run_command(
                ["go", "build", "-o", str(made), "."],
                "go cannot build a client of franz-go",
                cwd=target,
                env={"CGO_ENABLED": "0"},  # which would compile C for nothing
                timeout_s=BUILD_TIMEOUT_S,
            )
            made.rename(binary)
    return [str(binary)]


COMMANDS: Final[dict[str, Callable[[], list[str]]]] = {
    "aiokafka": _python("aio"),
    "franz_go": _go,
    "java": _java,
    "kafka_python": _python("kafka_python"),
    "librdkafka": _python("confluent"),
}
