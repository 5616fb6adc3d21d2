# SPDX-License-Identifier: Apache-2.0
"""Whatever is mixed and however it is cut: what comes before the first bad frame is answered, and nothing behind it."""

from pathlib import Path

import pytest

from tests.net.conversations import hear, plan

SEEDS = range(300)


@pytest.mark.slow
@pytest.mark.gate
async def test_all_before_the_first_bad_frame_is_answered_in_order_and_nothing_behind_it(
    tmp_path: Path,
) -> None:
    for seed in SEEDS:
        planned = plan(seed)
        heard = await hear(planned, tmp_path / str(seed))
        numbers = [int.from_bytes(answer[:4], "big") for answer in heard.answers]
        assert numbers == list(range(1, planned.good + 1)), f"seed {seed}"
        assert heard.closed == (planned.good < len(planned.frames)), f"seed {seed}"
        assert heard.error == "", f"seed {seed}"
        refused = sum(heard.counted.values()) - heard.counted["bytes_sent"]
        assert bool(refused) == heard.closed, f"seed {seed}"
