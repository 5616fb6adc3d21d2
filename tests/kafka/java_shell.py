# SPDX-License-Identifier: Apache-2.0
"""Kafka's own Java tools and client, run in one JVM for a whole test session (see java/Shell.java)."""

import base64
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kafka.jars import require_java_compiler, require_kafka_classpath
from tests.support.processes import tied_to_us

_SOURCE = Path(__file__).with_name("java") / "Shell.java"
_JAVA = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
_QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
# A table's header: words in capitals, one of them with an explanation in brackets.
_COLUMN = re.compile(r"#?[A-Z][A-Z-]*(?: \([A-Z]+\))?(?=\s|$)")


@dataclass(frozen=True)
class Ran:
    """What one command came to."""

    status: int
    output: str
    errors: str

    def table(self) -> list[dict[str, str]]:
        """Return the rows of the one table in the output by column; a column that is left empty is empty text."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        heads = [number for number, line in enumerate(lines) if not _COLUMN.sub("", line).strip()]
        assert len(heads) == 1, f"{len(heads)} tables in:\n{self.output}{self.errors}"
        columns = list(_COLUMN.finditer(lines[heads[0]]))
        ends = [column.start() for column in columns[1:]] + [None]
        return [
            {
                column.group(): line[column.start() : end].strip()
                for column, end in zip(columns, ends, strict=True)
            }
            for line in lines[heads[0] + 1 :]
        ]


class JavaShell:
    """A JVM that runs one command after the other."""

    def __init__(self, classpath: str, log: Path) -> None:
        """Start it; Java compiles the one source file by itself. Its own complaints go to `log`."""
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                tied_to_us([*_JAVA, _QUIET, "-cp", classpath, str(_SOURCE)]),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                text=True,
            )
        self._log = log

    def run(self, *words: str) -> Ran:
        """Run one command and return what it came to."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(base64.b64encode(word.encode()).decode() for word in words) + "\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline().rstrip("\n")
        assert reply, f"the JVM ended:\n{self._log.read_text()}"
        status, output, errors = reply.split(" ")
        return Ran(int(status), base64.b64decode(output).decode(), base64.b64decode(errors).decode())

    def groups(self, bootstrap: str, *arguments: str) -> Ran:
        """Run what kafka-consumer-groups.sh runs."""
        return self.run("groups", "--bootstrap-server", bootstrap, *arguments)

    def close(self) -> None:
        """End the JVM."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(120)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(120)
        self._process.stdout.close()


@pytest.fixture(scope="session")
def java_shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaShell]:
    """One JVM for the session; skips where Java 17+ (with its compiler) or Maven is missing, fails in CI."""
    classpath = require_kafka_classpath()
    require_java_compiler()
    shell = JavaShell(classpath, tmp_path_factory.mktemp("java") / "shell.log")
    yield shell
    shell.close()
