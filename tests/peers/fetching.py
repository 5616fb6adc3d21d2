# SPDX-License-Identifier: Apache-2.0
"""Brings a peer's sources from its package registry into the user's cache directory, once a version."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

DOWNLOAD_TIMEOUT_S = 600
BUILD_TIMEOUT_S = 600


class UnavailableError(Exception):
    """A peer's tests cannot be had, or not be run, on this machine; says why."""


class NotPublishedError(UnavailableError):
    """No registry has a peer's tests; says how else they can be had."""


def cache_directory() -> Path:
    """Where the peers' sources and what is built from them are kept."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "groupkeeper" / "peers"


def sdist(project: str, version: str) -> Path:
    """The unpacked source distribution of a Python project, from the index that pip is set up for.

    Raises UnavailableError.
    """

    def download(into: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
        wanted = ["--no-deps", "--no-binary", ":all:", "--dest", str(into), f"{project}=={version}"]
        run_command([*pip, *wanted], f"pip cannot download the sources of {project} {version}")

    return _fetched(f"{project}-{version}", download)


def npm_package(package: str, version: str) -> Path:
    """An unpacked package, from the registry that npm is set up for. Raises UnavailableError."""
    require("npm", "npm fetches it")

    def download(into: Path) -> None:
        command = ["npm", "pack", "--silent", "--pack-destination", str(into), f"{package}@{version}"]
        run_command(command, f"npm cannot download {package} {version}")

    return _fetched(f"{package.strip('@').replace('/', '-')}-{version}", download)


def built_from_checkout(name: str, variable: str, repository: str) -> tuple[str, Path]:
    """The commit, as far as that is known, and the program that Go builds of a checkout which `variable` names.

    Raises UnavailableError, and NotPublishedError where it names none.
    """
    named = os.environ.get(variable)
    if not named:
        raise NotPublishedError(f"{variable} names no checkout of {repository}, which no registry has")
    require("go", "it builds it")
    source = Path(named).resolve()
    with locked(name) as target:
        target.mkdir(exist_ok=True)
        binary = target / name
        build = ["go", "build", "-o", str(binary), "."]
        run_command(build, "go cannot build it", cwd=source, timeout_s=BUILD_TIMEOUT_S)
    try:
        commit = run_command(["git", "rev-parse", "--short", "HEAD"], "no commit", cwd=source).strip()
    except UnavailableError:
        commit = ""
    return commit, binary


@contextmanager
def locked(name: str) -> Iterator[Path]:
    """The directory `name` of the cache, for one process at a time: the others wait and find it filled."""
    cache = cache_directory()
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield cache / name


def built_once(name: str, sources: Sequence[Path], build: Callable[[Path], None]) -> Path:
    """What `build` puts into the directory that it is given, kept in the cache until one of the sources changes.

    Raises what `build` raises.
    """
    digest = hashlib.sha256()
    for each in sources:
        digest.update(each.name.encode() + b"\0" + each.read_bytes())
    with locked(name) as target:
        target.mkdir(exist_ok=True)
        found = target / digest.hexdigest()[:16]
        if not found.exists():
            unfinished = target / "unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            build(unfinished)
            unfinished.rename(found)
    return found


def build_in_go(sources: Path, into: Path, *programs: str) -> None:
    """Build these packages of a module in Go. Raises UnavailableError."""
    require("go", "it fetches and builds clients in Go")
    command = ["go", "build", "-o", f"{into}/", *programs]
    # CGO would compile C for nothing.
    run_command(
        command,
        "go cannot build the clients",
        cwd=sources,
        env={"CGO_ENABLED": "0"},
        timeout_s=BUILD_TIMEOUT_S,
    )


def require(program: str, what_for: str) -> None:
    """Raises UnavailableError where a program is missing."""
    if shutil.which(program) is None:
        raise UnavailableError(f"there is no {program} on the PATH ({what_for})")


def run_command(
    command: Sequence[str],
    failure: str,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = DOWNLOAD_TIMEOUT_S,
) -> str:
    """Run a command at low priority and return what it printed. Raises UnavailableError with its last words."""
    try:
        done = subprocess.run(
            gently(command),
            cwd=cwd,
            env=None if env is None else {**os.environ, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"{failure}: no end after {timeout_s:g} s") from error
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise UnavailableError(f"{failure}: {' / '.join(said[-3:]) or f'status {done.returncode}'}")
    return done.stdout


def gently(command: Sequence[str]) -> list[str]:
    """The command at a low priority, where there is `nice`: others may be measuring on this machine."""
    nice = shutil.which("nice")
    return [nice, "-n", "10", *command] if nice else list(command)


def _fetched(name: str, download: Callable[[Path], None]) -> Path:
    with locked(name) as target:
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=target.parent, prefix="download-") as work:
                packed, unpacked = Path(work) / "packed", Path(work) / "unpacked"
                packed.mkdir()
                download(packed)
                (archive,) = packed.iterdir()
                # what a registry has is what it was made for; older Pythons cannot filter
                if hasattr(tarfile, "data_filter"):
                    shutil.unpack_archive(archive, unpacked, filter="data")
                else:
                    shutil.unpack_archive(archive, unpacked)
                (top,) = unpacked.iterdir()
                top.rename(target)
        return target
