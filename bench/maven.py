# SPDX-License-Identifier: Apache-2.0
"""Jars from Maven Central by way of Maven, kept in the user's cache directory."""

import fcntl
import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

OLDEST_JAVA = 17
_DOWNLOAD_TIMEOUT_S = 600


@dataclass(frozen=True)
class Missing:
    """Why they are not on this machine, in words for the user."""

    reason: str


def cache_directory() -> Path:
    """Return where everything is kept that is downloaded."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "groupkeeper"


@functools.cache
def locate_jars(
    name: str, pom: Path, chosen: str | None = None, properties: tuple[str, ...] = ()
) -> Path | Missing:
    """Return the directory `name` of the cache with the dependencies of `pom`, or what is missing for that.

    They are downloaded when it is the first time; a directory that somebody has `chosen` is taken in its place.
    `properties` of the pom, as `name=value`, stand in place of those that it sets.
    """
    java = java_version()
    if java is None or not _is_new_enough(java):
        return Missing(f"{name} needs Java {OLDEST_JAVA} or later on the PATH (found: {java or 'none'})")
    if chosen:
        return Path(chosen)
    jars = cache_directory() / name
    if _complete(jars):
        return jars
    if shutil.which("mvn") is None:
        return Missing(f"{name} needs Maven (mvn) on the PATH to fetch its jars")
    jars.parent.mkdir(parents=True, exist_ok=True)
    # Test runs side by side: the first one downloads, the others wait here and find it done.
    with (jars.parent / f"{jars.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return jars if _complete(jars) else _download(pom, jars, properties)


def java_version() -> str | None:
    """Return the version of the `java` on the PATH, as it names itself, None when there is none."""
    java = shutil.which("java")
    if java is None:
        return None
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "([^"]+)"', said.stderr + said.stdout)
    return match.group(1) if match and said.returncode == 0 else None


def _is_new_enough(version: str) -> bool:
    # Up to Java 8 the number came second: "1.8.0_292"; since then "17.0.15", or "21-ea".
    numbers = re.findall(r"\d+", version)
    return int(numbers[numbers[0] == "1"]) >= OLDEST_JAVA


def _complete(jars: Path) -> bool:
    return (jars / ".complete").exists()


def _download(pom: Path, jars: Path, properties: Iterable[str]) -> Path | Missing:
    with tempfile.TemporaryDirectory(dir=jars.parent, prefix="download-") as work:
        unpacked = Path(work) / "jars"
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={unpacked}"]
        copy += [f"-D{each}" for each in properties]
        try:
            maven = subprocess.run(
                ["mvn", "-q", "-B", "-f", shutil.copy(pom, work), *copy],
                capture_output=True,
                text=True,
                timeout=_DOWNLOAD_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Missing(f"Maven did not fetch {jars.name} within {_DOWNLOAD_TIMEOUT_S} s")
        if maven.returncode != 0:
            said = (maven.stdout + maven.stderr).strip().splitlines()
            return Missing(f"Maven could not fetch {jars.name}: {said[0] if said else maven.returncode}")
        (unpacked / ".complete").touch()
        shutil.rmtree(jars, ignore_errors=True)
        unpacked.rename(jars)
    return jars
