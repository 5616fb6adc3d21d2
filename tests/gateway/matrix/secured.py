# SPDX-License-Identifier: Apache-2.0
"""A Kafka cluster with the users of all sets of permissions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from kafka.protocol.producer import InitProducerIdRequest

from tests.gateway.matrix.permission_sets import Acl, Pattern, PermissionSet, bindings
from tests.gateway.matrix.requests import GROUP_IDS, NO_ACLS, TOPICS
from tests.kafka.cluster import KafkaCluster
from tests.support.raw import RawConnection, wait_for_coordinator
from tests.support.waiting import wait_until

PROTOCOL: Final = "SASL_PLAINTEXT"


@contextmanager
def secured_cluster(work: Path, sets: Sequence[PermissionSet]) -> Iterator[KafkaCluster]:
    """A running broker that has all ACLs and topics, and coordinates all groups."""
    cluster = KafkaCluster(
        work,
        protocols=(PROTOCOL,),
        acls=True,
        authorizer="BrokenAuthorizer",
        users=[each.user for each in sets],
        settings={"offsets.topic.num.partitions": 1},  # Metadata of all topics has each of them
        formatting=("--feature", "group.version=0"),  # without groups of KIP-848, as a gateway is
    )
    try:
        cluster.start()
        for topic in TOPICS:
            cluster.create_topic(topic)
        of_nobody = Acl("READ", Pattern("TOPIC", "absent")).binding(NO_ACLS.removeprefix("User:"))
        cluster.create_acls([*bindings(sets), of_nobody])
        for group in GROUP_IDS:
            wait_for_coordinator(cluster.address(1), group)
        wait_until(partial(_gives_producer_ids, cluster.address(1)), what="ids of producers")
        yield cluster
    finally:
        cluster.close()


def _gives_producer_ids(bootstrap: str) -> bool:
    """Whether the broker has producer ids, which it gets from the controller after its start."""
    with RawConnection(bootstrap) as connection:
        asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
        return bool(connection.call(asked, 4).error_code == 0)
