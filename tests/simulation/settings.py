# SPDX-License-Identifier: Apache-2.0
"""How simulated nodes are set up, and what their clients assume."""

from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from coordinator.config import Address, Settings

ROOT: Final = Path("/data")
PORT: Final = 9092
CLUSTER_ID: Final = "c2ltdWxhdGVkLW5vZGUxMjM"
JOURNAL_STEP_BYTES: Final = 16_384

TOPIC: Final = "work"
PARTITIONS: Final = 6
SIDE_TOPIC: Final = "aside"
"""Comes and goes, and no member subscribes to it."""
WIDE_TOPIC: Final = "wide"
WIDE_PARTITIONS: Final = 950
"""So many that a commit to all of them is handled in slices."""
SESSION_MS: Final = 10_000
REBALANCE_MS: Final = 15_000
HEARTBEAT_S: Final = 3.0
RETENTION_MINUTES: Final = 1
EXPIRY_INTERVAL_MS: Final = 7_000

SETTINGS: Final = Settings(
    listen=Address("127.0.0.1", PORT),
    metrics_listen=None,
    data_dir=ROOT,
    offsets_topic_num_partitions=3,
    offsets_topic_segment_bytes=20_000,
    group_initial_rebalance_delay_ms=500,
    auto_create_topics_enable=False,
    offsets_retention_minutes=RETENTION_MINUTES,
    offsets_retention_check_interval_ms=EXPIRY_INTERVAL_MS,
    journal_checkpoint_bytes=65_536,
    journal_checkpoint_interval_ms=20_000,
    log_cleaner_backoff_ms=5_000,
    min_cleanable_dirty_ratio=0.2,
    delete_retention_ms=10_000,
    shutdown_timeout_ms=1_000,
    worker_timeout_ms=2_000,
)
PRIVATE_SHARE: Final = 0.5
"""How many of the nodes that are alone offer what only gateways ask for."""
NODES: Final = (1, 1, 2, 3)
"""How many nodes a world has, each as likely."""


def chosen(rng: Random, **fixed: Any) -> Settings:
    """The settings of a world."""
    flush = rng.choice(["always", "always", "os"])
    workers = chosen_workers(rng)
    if workers == 1 and rng.random() < PRIVATE_SHARE:
        # As behind a gateway, whose cluster nobody asks for anything: groups may begin without a mark.
        fixed |= {"upstream_bootstrap_servers": (Address("10.9.9.9", 9092),), "gateway_adopt": "off"}
    return msgspec.structs.replace(SETTINGS, log_flush=flush, workers=workers, **fixed)


def chosen_workers(rng: Random) -> int:
    """How many nodes a world has, from some start on."""
    return rng.choice(NODES)
