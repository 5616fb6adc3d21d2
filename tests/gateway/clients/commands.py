# SPDX-License-Identifier: Apache-2.0
"""How each client library's process is started."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.clients.commands import LOG_LEVEL, java_program
from tests.peers.fetching import build_in_go, built_once
from tests.peers.franz_go import MODULE

HERE: Final = Path(__file__).parent


def command(library: str) -> list[str]:
    """What to run, less the options. Raises UnavailableError, which says what is missing."""
    return COMMANDS[library]()


def _python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"tests.gateway.clients.{module}"]


def _java() -> list[str]:
    return java_program(HERE / "java" / "Client.java", f"{LOG_LEVEL}=warn")


def _go() -> list[str]:
    """With the modules that the peers' tests pin."""
    sources = (MODULE / "go.mod", MODULE / "go.sum", HERE / "go" / "main.go")

    def build(into: Path) -> None:
        for each in sources:
            shutil.copyfile(each, into / each.name)
        build_in_go(into, into, ".")

    return [str(built_once("franz-go-client", sources, build) / "peers")]


COMMANDS: Final[dict[str, Callable[[], list[str]]]] = {
    "aiokafka": _python("aio"),
    "franz_go": _go,
    "java": _java,
    "kafka_python": _python("kafka_python"),
    "librdkafka": _python("confluent"),
}
