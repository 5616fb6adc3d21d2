# SPDX-License-Identifier: Apache-2.0
"""Kafka 4.3.0's jars, from Maven Central by way of Maven, kept in the user's cache directory."""

import fcntl
import functools
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.support.missing import skip_or_fail

KAFKA_VERSION = "4.3.0"
OLDEST_JAVA = 17
_POM = Path(__file__).with_name("pom.xml")
_DOWNLOAD_TIMEOUT_S = 600


@dataclass(frozen=True)
class Missing:
    """Why there is no Kafka on this machine, in words for the user."""

    reason: str


def cache_directory() -> Path:
    """Return where the jars are kept."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "groupkeeper" / f"kafka-{KAFKA_VERSION}"


@functools.cache
def locate_kafka() -> Path | Missing:
    """Return the directory of Kafka's jars, downloaded when it is the first time, or what is missing for that."""
    if (major := java_major_version()) is None or major < OLDEST_JAVA:
        found = "none" if major is None else f"Java {major}"
        return Missing(f"a real Kafka needs Java {OLDEST_JAVA} or later on the PATH (found: {found})")
    jars = cache_directory()
    if _complete(jars):
        return jars
    if shutil.which("mvn") is None:
        return Missing("a real Kafka needs Maven (mvn) on the PATH to fetch its jars")
    jars.parent.mkdir(parents=True, exist_ok=True)
    # Test runs side by side: the first one downloads, the others wait here and find it done.
    with (jars.parent / f"{jars.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return jars if _complete(jars) else _download(jars)


def kafka_classpath() -> str | None:
    """Return a Java class path with all of Kafka and its tools, None when Java 17+ or Maven is missing."""
    found = locate_kafka()
    return None if isinstance(found, Missing) else f"{found}/*"


def require_kafka_classpath() -> str:
    """Return the class path; without one skip the test with the reason, or fail it when the environment sets CI."""
    found = locate_kafka()
    return f"{found}/*" if isinstance(found, Path) else skip_or_fail(found.reason)


def require_java_compiler() -> None:
    """Skip (or in CI fail) the test where the `java` on the PATH cannot compile: a JRE, not a JDK."""
    modules = subprocess.run(["java", "--list-modules"], capture_output=True, text=True, check=False).stdout
    if "jdk.compiler" not in modules:
        skip_or_fail("Kafka's Java tools are driven by a Java source file, which needs a JDK (found: a JRE)")


def java_major_version() -> int | None:
    """Return the version of the `java` on the PATH, None when there is none."""
    java = shutil.which("java")
    if java is None:
        return None
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    # Up to Java 8 the number came second: "1.8.0_292"; since then "17.0.15".
    match = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(match.group(1)) if match and said.returncode == 0 else None


def _complete(jars: Path) -> bool:
    return (jars / ".complete").exists()


def _download(jars: Path) -> Path | Missing:
    with tempfile.TemporaryDirectory(dir=jars.parent, prefix="download-") as work:
        pom = shutil.copy(_POM, work)
        unpacked = Path(work) / "jars"
        command = [
            "mvn",
            "-q",
            "-B",
            "-f",
            str(pom),
            "dependency:copy-dependencies",
            f"-DoutputDirectory={unpacked}",
        ]
        try:
            maven = subprocess.run(
                command, capture_output=True, text=True, timeout=_DOWNLOAD_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return Missing(f"Maven did not fetch Kafka {KAFKA_VERSION} within {_DOWNLOAD_TIMEOUT_S} s")
        if maven.returncode != 0:
            said = (maven.stdout + maven.stderr).strip().splitlines()
            return Missing(
                f"Maven could not fetch Kafka {KAFKA_VERSION}: {said[0] if said else maven.returncode}"
            )
        (unpacked / ".complete").touch()
        shutil.rmtree(jars, ignore_errors=True)
        unpacked.rename(jars)
    return jars
