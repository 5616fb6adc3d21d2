# SPDX-License-Identifier: Apache-2.0
"""Where and with what a measurement was made, so that its numbers can be judged later."""

import os
import platform
import subprocess
import time
from importlib.metadata import version
from pathlib import Path

from bench.kafka import KAFKA_VERSION
from bench.maven import java_version
from bench.procstat import filesystem_type
from bench.servers import REPOSITORY


def describe(data: Path) -> dict[str, str]:
    """The machine, the software, the commit and the date. `data` is where the servers write."""
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "commit": commit(),
        "machine": f"{_cpu_model()}, {os.cpu_count()} CPUs, {_memory_gib():.0f} GiB",
        "load before": f"{os.getloadavg()[0]:.2f} (average of one minute; other work falsifies what follows)",
        "system": f"{platform.system()} {platform.release()}, data on {filesystem_type(data)}",
        "Python": f"{platform.python_version()}, uvloop {version('uvloop')}",
        "Kafka": f"{KAFKA_VERSION} on Java {java_version() or '(none)'}",
    }


def commit() -> str:
    """The commit of the working tree, with a word when the tree differs from it."""
    described = _git("rev-parse", "--short=12", "HEAD")
    if not described:
        return "unknown"
    return f"{described} with changes" if _git("status", "--porcelain", "--untracked-files=no") else described


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
