# SPDX-License-Identifier: Apache-2.0
"""What passes on Kafka and not through a gateway, on purpose (see `test_peers.py`), and what passes by chance."""

from collections.abc import Mapping
from typing import Final

from tests.support.target import target_kind

IN_TRANSACTIONS: Final = "offsets in transactions, which a gateway does not offer"
SHARE: Final = "share groups, which a gateway does not offer"
KIP_848: Final = "the consumer protocol of KIP-848, which a gateway refuses"
COPIES_ANYWHERE: Final = "wants copies at all nodes of the metadata: our own keep no records"
ANY_NODE: Final = (
    "asks a node chosen by chance for its settings: a broker's are there, of our own nothing is set"
)
ONE_NODE: Final = "takes for granted that there is one node: our own come on top of the brokers"

EXPLAINED: Final[Mapping[str, Mapping[str, str]]] = {
    "kafka-python": {
        "test_producer_integration::test_transactional_producer_offsets": IN_TRANSACTIONS,
        "test_admin_integration::test_alter_partition_reassignments": COPIES_ANYWHERE,
        "test_admin_integration::test_describe_configs_broker_resource_returns_configs": ANY_NODE,
        "test_admin_integration::test_describe_configs_mixed_resources_returns_configs": ANY_NODE,
    },
    "aiokafka": {
        **{
            f"test_transactional_producer.TestKafkaProducerIntegration::{test}": IN_TRANSACTIONS
            for test in (
                "test_producer_transactional_send_offsets_to_transaction",
                "test_producer_transactional_send_offsets_and_abort",
            )
        },
        "test_sasl.TestKafkaSASL::test_sasl_deny_transaction_group_describe": IN_TRANSACTIONS,
        "test_sasl.TestKafkaSASL::test_sasl_deny_transaction_group_read": IN_TRANSACTIONS,
        "test_admin.TestAdmin::test_describe_cluster": ONE_NODE,
        "test_admin.TestAdmin::test_describe_configs_broker": ONE_NODE,
        "test_admin.TestAdmin::test_metadata": ONE_NODE,
    },
    "franz-go": {
        "TestTxnEtl": IN_TRANSACTIONS,
        "TestShareGroup": SHARE,
        "TestShareGroupETL": SHARE,
        "TestShareGroupAckOnClose": SHARE,
        "TestShareGroupOffsetsAdmin": SHARE,
        "TestConsumeRegexShareSkipsInternal": SHARE,
        "Test848RegexBrokerResolves": KIP_848,
    },
    "librdkafka": {
        "0081_admin/do_test_CreateTopics": COPIES_ANYWHERE,
        "0081_admin/do_test_CreatePartitions": COPIES_ANYWHERE,
    },
}
"""By the peer and the name that reports show: the reason."""

LOST_REFRESH: Final = (
    "its consumer subscribes while its first metadata request is under way: where the answer comes after that,"
    " kafka-python forgets that it has to ask for the topic, and reads nothing for five minutes"
)
BY_CHANCE: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "test_admin_integration::test_describe_group_exists",
            "test_consumer_integration::test_group",
            "test_consumer_integration::test_heartbeat_thread",
            "test_consumer_integration::test_kafka_consumer",
            "test_consumer_integration::test_kafka_consumer__offset_commit_resume",
            "test_consumer_integration::test_kafka_consumer_max_bytes_one_msg",
            "test_consumer_integration::test_kafka_consumer_max_bytes_simple",
            "test_consumer_integration::test_kafka_consumer_unsupported_encoding",
            "test_producer_integration::test_end_to_end[None]",
            "test_producer_integration::test_end_to_end[gzip]",
            "test_producer_integration::test_idempotent_producer_max_in_flight[1]",
            "test_producer_integration::test_idempotent_producer_max_in_flight[2]",
            "test_producer_integration::test_idempotent_producer_max_in_flight[5]",
        ),
        LOST_REFRESH,
    ),
}
"""What of kafka-python's fails now and then, whatever serves it, and why: it must pass when it is run once more."""


def explained(peer: str) -> Mapping[str, str]:
    """The tests of a peer that are not run against the chosen target, since they would fail there, and why."""
    return EXPLAINED[peer] if target_kind() == "gateway" else {}
