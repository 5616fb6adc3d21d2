# SPDX-License-Identifier: Apache-2.0
"""How the simulated gateway and the model cluster are set up."""

from typing import Final

import msgspec

from coordinator.config import Address, Settings
from tests.simulation.settings import ROOT, SETTINGS

GATEWAY_HOST: Final = "gateway.example"
PORT_BASE: Final = 30_000
OUR_ID_FIRST: Final = 1_000_001
BROKER_DOMAIN: Final = "cluster.internal"
BROKERS: Final = {
    number: Address(f"broker-{number}.{BROKER_DOMAIN}", 19_400 + number) for number in (1, 2, 3)
}
"""Where the brokers are at first, which no client is to hear."""
MOVING: Final = 3
"""The broker that has another port each time that it comes back."""
MOVES_BY: Final = 10
PASSWORD_FILE: Final = ROOT / "cluster-password"
CACHE_MS: Final = 3_000
KEPT_BYTES_MAX: Final = 1024 * 1024
WORK_TOPIC: Final = "work"
WORK_PARTITIONS: Final = 6
SIDE_PARTITIONS: Final = 3
"""Of the topic that is deleted, and made anew, again and again."""
CONNECTIONS_MAX: Final = 120
OFFSETS_TOPIC: Final = "__consumer_offsets"
MOVED: Final = ("moved-0", "moved-1")
"""Groups that are at the cluster and here in turn."""
OWN: Final = "own"
"""Is here only."""
RARE: Final = "rare"
"""Is here only, and commits seldom."""
HELD: Final = "held"
"""Has a member at the cluster all the time."""
NOWHERE: Final = "nowhere"
GROUPS: Final = (*MOVED, OWN, RARE, HELD)


def gateway_settings(workers: int) -> Settings:
    """The settings of a world."""
    return msgspec.structs.replace(
        SETTINGS,
        workers=workers,
        gateway_workers=1,
        gateway_adopt="first-use",
        offsets_retention_minutes=7 * 24 * 60,
        upstream_bootstrap_servers=tuple(BROKERS[number] for number in BROKERS if number != MOVING),
        upstream_security_protocol="SASL_PLAINTEXT",
        upstream_sasl_mechanism="PLAIN",
        upstream_sasl_username="gateway",
        upstream_sasl_password_file=PASSWORD_FILE,
        upstream_metadata_refresh_ms=1_000,
        upstream_request_timeout_ms=6_000,
        gateway_host=GATEWAY_HOST,
        gateway_port_base=PORT_BASE,
        gateway_authorization_cache_ms=CACHE_MS,
        connections_unsent_max_bytes=KEPT_BYTES_MAX,
        connections_unread_max_ms=10_000,
        max_connections=CONNECTIONS_MAX,
    )
