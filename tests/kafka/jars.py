# SPDX-License-Identifier: Apache-2.0
"""Kafka's jars."""

import subprocess
from pathlib import Path

from bench.kafka import KAFKA_VERSION, POM
from bench.maven import Missing, locate_jars
from tests.support.missing import skip_or_fail


def locate_kafka(version: str = KAFKA_VERSION) -> Path | Missing:
    """Return the directory of Kafka's jars, or what is missing for that."""
    return locate_jars(f"kafka-{version}", POM, properties=(f"kafka.version={version}",))


def kafka_classpath() -> str | None:
    """Return a Java class path with all of Kafka and its tools, None when Java 17+ or Maven is missing."""
    found = locate_kafka()
    return None if isinstance(found, Missing) else f"{found}/*"


def require_kafka_classpath(version: str = KAFKA_VERSION) -> str:
    """Return the class path; without one skip the test with the reason, or fail it when the environment sets CI."""
    found = locate_kafka(version)
    return f"{found}/*" if isinstance(found, Path) else skip_or_fail(found.reason)


def tool(class_name: str) -> list[str]:
    """Return the command that a script in Kafka's bin/ runs, for the class that is its last line.

    Skips the test where Java 17+ or Maven is missing (fails it in CI).
    """
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return [*java, quiet, "-cp", require_kafka_classpath(), class_name]


def require_java_compiler() -> None:
    """Skip (or in CI fail) the test where the `java` on the PATH cannot compile: a JRE, not a JDK."""
    if missing := java_compiler():
        skip_or_fail(missing)


def compiled(name: str, directory: Path) -> Path:
    """Compile `tests/kafka/java/NAME.java` against Kafka's jars into a directory, and return that."""
    require_java_compiler()
    source = Path(__file__).parent / "java" / f"{name}.java"
    jars = ":".join(map(str, Path(require_kafka_classpath()).parent.glob("*.jar")))
    compiler = ["java", "-m", "jdk.compiler/com.sun.tools.javac.Main"]
    subprocess.run([*compiler, "-cp", jars, "-d", str(directory), str(source)], check=True)
    return directory


def java_compiler() -> str | None:
    """What is missing where the `java` on the PATH cannot compile; None where it can."""
    modules = subprocess.run(["java", "--list-modules"], capture_output=True, text=True, check=False).stdout
    if "jdk.compiler" in modules:
        return None
    return "Kafka's Java tools are driven by a Java source file, which needs a JDK (found: a JRE)"
