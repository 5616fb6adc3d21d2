# SPDX-License-Identifier: Apache-2.0
"""The way of a commit through the code is the one that ARCHITECTURE.md draws."""

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any, Final

from protocol.errors import ErrorCode
from tests.net import requests
from tests.partitions.running import commit_error, node

PRODUCT: Final = ("coordinator.", "protocol.", "storage.")
PERIODIC: Final = ("coordinator.jobs.", "coordinator.runtime.periodic_jobs", "coordinator.runtime.timers")
"""What may come round at any moment."""
PAGE: Final = Path(__file__).parents[1] / "ARCHITECTURE.md"


async def modules_of_a_commit(data_dir: Path) -> list[str]:
    """The modules that a commit of one offset enters, in order, each once: from its bytes to the answer's."""
    async with node(data_dir, log_flush="os") as running:
        client = await running.client()
        assert (
            await client.commit("group", 0, 1) is ErrorCode.NONE
        )  # the second one is what every commit is like
        entered: dict[str, None] = {}

        def look(frame: FrameType, event: str, _argument: Any) -> None:
            name = frame.f_globals.get("__name__", "")
            if event == "call" and name.startswith(PRODUCT) and not name.startswith(PERIODIC):
                entered.setdefault(name)

        client.send(requests.commit("group", {0: 2}))
        sys.setprofile(look)
        try:
            answer = await client.receive()
        finally:
            sys.setprofile(None)
        assert commit_error(answer) is ErrorCode.NONE
    return list(entered)


def section() -> str:
    page = PAGE.read_text()
    return page[page.index("## The modules of a commit") :].split("\n## ")[0]


async def test_a_commit_walks_as_the_architecture_says(tmp_path: Path) -> None:
    entered = await modules_of_a_commit(tmp_path)
    steps = re.findall(r"^\| \d.*", section(), re.MULTILINE)
    assert [module for step in steps for module in re.findall(r"`([\w.]+\.\w+)`", step)] == entered
    folders = {".".join(module.split(".")[:-1][:2]) for module in entered}
    assert f"{len(entered)} modules in {len(folders)} folders" in section()
