# SPDX-License-Identifier: Apache-2.0
"""A clone of this checkout, and the environment of somebody who has never installed it."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.support.missing import skip_or_fail
from tests.support.processes import tied_to_us

KEPT: Final = re.compile(
    r"PATH|LANG|LC_\w+|TERM|JAVA_HOME"
    # the way to package registries, which is the machine's and not the checkout's
    r"|(?i:https?|all|no)_proxy|SSL_CERT_(?:FILE|DIR)|(?:REQUESTS|CURL)_CA_BUNDLE|MAVEN_(?:OPTS|ARGS)|JAVA_TOOL_OPTIONS"
    r"|PIP_(?:INDEX_URL|EXTRA_INDEX_URL|NO_INDEX|FIND_LINKS|TRUSTED_HOST|PROXY|CERT|CLIENT_CERT|CONFIG_FILE)"
    r"|PIP_(?:DEFAULT_TIMEOUT|TIMEOUT|RETRIES|KEYRING_PROVIDER)"
)
CONFIGURED: Final = (".config/pip", ".pip", ".m2/settings.xml")
"""Files and folders of a user that say where packages come from."""


def clone(root: Path, to: Path, environment: Mapping[str, str]) -> None:
    """Clone the checkout at `root`, and copy what was changed since its last commit, so that this is tried, too.

    Skips the test, or in CI fails it, where `root` is no checkout (an unpacked archive of the sources).
    """
    if not (root / ".git").exists() or shutil.which("git") is None:
        skip_or_fail("these sources are no checkout of git, so nothing can be cloned")
    subprocess.run(["git", "clone", "--quiet", str(root), str(to)], env=environment, check=True)
    # of whatever was changed, removed or is new and not ignored
    listed = ["git", "ls-files", "-z", "--modified", "--others", "--exclude-standard"]
    changed = subprocess.run(listed, cwd=root, env=environment, capture_output=True, text=True, check=True)
    for name in filter(None, changed.stdout.split("\0")):
        if (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)
        else:
            (to / name).unlink(missing_ok=True)


def newcomer(home: Path) -> dict[str, str]:
    """The environment of a user whose home `home` is: empty, but for how this machine reaches package registries.

    And for pip's cache: to make a wheel of Spark takes minutes, and whether that succeeds is Spark's affair.
    """
    home.mkdir(parents=True)
    for name in CONFIGURED:
        if (Path.home() / name).exists():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).symlink_to(Path.home() / name)
    # a checkout may belong to somebody else, as in a container
    (home / ".gitconfig").write_text("[safe]\n\tdirectory = *\n")
    kept = {name: value for name, value in os.environ.items() if KEPT.fullmatch(name)}
    ours = str(Path(sys.prefix, "bin"))
    path = os.pathsep.join(each for each in kept["PATH"].split(os.pathsep) if each != ours)
    places = {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "PIP_CACHE_DIR": str(pip_cache())}
    return {**kept, "PATH": path, **places}


def pip_cache() -> Path:
    """Where pip keeps what it has fetched and made for the user who runs the tests."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("PIP_CACHE_DIR") or caches / "pip")


class Clone:
    """Where README's commands are typed."""

    def __init__(self, root: Path, work: Path) -> None:
        """Clone the checkout at `root` into a directory below `work`, which is empty."""
        self.environment = newcomer(work / "home")
        self.tree = work / "groupkeeper"
        clone(root, self.tree, self.environment)

    def run(self, command: str, **also: str) -> str:
        """What a command prints that a shell runs, with more variables in its environment; it must succeed."""
        running = subprocess.Popen(
            tied_to_us(["/bin/sh", "-c", command]),
            cwd=self.tree,
            env={**self.environment, **also},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            printed, _ = running.communicate()
        except BaseException:  # the test's own time-out: what make has started must not outlive it
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
            raise
        if running.returncode:
            pytest.fail(f"{command}: exit status {running.returncode}\n{printed[-8000:]}", pytrace=False)
        return printed
