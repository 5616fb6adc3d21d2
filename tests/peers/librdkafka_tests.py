# SPDX-License-Identifier: Apache-2.0
"""Which of librdkafka's tests are run, and why the others are not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Chosen:
    """A test, or the parts of one whose names contain `subtest`; `scenario`: how librdkafka calls a server's set-up.

    The program goes by the number of a test: those with the same number run with it.
    """

    test: str
    subtest: str = ""
    scenario: str = "default"

    @property
    def name(self) -> str:
        """As reports show it."""
        return f"{self.test}/{self.subtest.strip(': ')}" if self.subtest else self.test

    @property
    def file_name(self) -> str:
        """The same for files."""
        return f"{self.name.replace('/', '-')}-{self.scenario}"

    @property
    def number(self) -> str:
        """By which the program finds it."""
        return self.test[:4]


ADMIN: Final = (
    "CreateTopics:",
    "DeleteTopics:",
    "CreatePartitions:",
    "DescribeConfigs:",
    "DescribeTopics:",
    "DescribeCluster:",
    "DeleteConsumerGroupOffsets:",
    "AlterConsumerGroupOffsets:",
    "ListConsumerGroupOffsets:",
    "unclean_destroy:",
)
COOPERATIVE: Final = (
    "c_subscribe_no_cb_test",
    "d_change_subscription_add_topic",
    "e_change_subscription_remove_topic",
    "f_assign_call_cooperative",
    "g_incremental_assign_call_eager",
    "h_delete_topic",
    "i_delete_topic_2",
    "j_delete_topic_no_rb_callback",
    "k_add_partition",
    "l_unsubscribe",
    "m_unsubscribe_2",
    "n_wildcard",
    "s_subscribe_when_rebalancing",
    "t_max_poll_interval_exceeded",
    "x_incremental_rebalances",
)

RUN: Final[Sequence[Chosen]] = (
    *(Chosen("0113_cooperative_rebalance", part) for part in reversed(COOPERATIVE)),  # the longest first
    Chosen("0045_subscribe_update"),
    Chosen("0045_subscribe_update", scenario="noautocreate"),
    *(Chosen("0081_admin", f"do_test_{part}") for part in reversed(ADMIN)),
    Chosen("0102_static_group_rebalance", "do_test_fenced_member_classic"),
    Chosen("0016_client_swname"),
    Chosen("0019_list_groups", "do_test_list_groups_hang"),
    Chosen("0035_api_version"),
    Chosen("0063_clusterid"),
    Chosen("0067_empty_topic"),
    Chosen("0069_consumer_add_parts"),
    Chosen("0075_retry"),
    Chosen("0099_commit_metadata"),
    Chosen("0123_connections_max_idle"),
    Chosen("0140_commit_metadata"),
)

DATA: Final = "needs produced data"
CONFIGS: Final = "alters settings of topics, which is not served"
ACLS: Final = "ACLs, which are not served"
SCRAM_USERS: Final = "SCRAM users, which are not served"
SHARE: Final = "share groups, which are not coordinated here"
TRANSACTIONS: Final = "transactions, which are not coordinated here"
SECURED: Final = "needs TLS or SASL, without which it is built"
WITH_RECORDS: Final = (DATA, CONFIGS, ACLS, SCRAM_USERS, TRANSACTIONS)
"""Reasons that are none where there are records, and a Kafka behind or in front."""

NOT_RUN: Final[Mapping[str, str]] = {
    "0019_list_groups/do_test_list_groups:": DATA,
    "0081_admin/do_test_DeleteGroups": DATA,
    "0081_admin/do_test_ListConsumerGroups": DATA,
    "0081_admin/do_test_DescribeConsumerGroups:": DATA,
    "0081_admin/do_test_DeleteRecords": DATA,
    "0081_admin/do_test_ListOffsets": DATA,
    "0081_admin/do_test_DescribeConfigs_groups": "settings of groups, which Kafka has for its new protocols",
    "0081_admin/do_test_AlterConfigs": CONFIGS,
    "0081_admin/do_test_IncrementalAlterConfigs": CONFIGS,
    "0081_admin/do_test_DescribeConsumerGroups_with_authorized_ops": SECURED,
    "0081_admin/do_test_CreateAcls": ACLS,
    "0081_admin/do_test_DescribeAcls": ACLS,
    "0081_admin/do_test_DeleteAcls": ACLS,
    "0081_admin/do_test_UserScramCredentials": SCRAM_USERS,
    "0102_static_group_rebalance/do_test_static_group_rebalance": DATA,
    "0102_static_group_rebalance/do_test_fenced_member_consumer": "the consumer protocol of KIP-848",
    **{
        f"0103_transactions/{part}": TRANSACTIONS
        for part in (
            "do_test_misuse_txn",
            "do_test_basic_producer_txn",
            "do_test_consumer_producer_txn",
            "do_test_fenced_txn",
            "do_test_fatal_idempo_error_without_kip360",
            "don't send offsets",
            ": send offsets",
            "do_test_wmark_isolation_level",
            "do_test_txn_abort_control_message_leader_epoch",
        )
    },
    "0109_auto_create_topics": ACLS,
    "0115_producer_auth": ACLS,
    "0119_consumer_auth": ACLS,
    "0113_cooperative_rebalance/a_assign_tests": DATA,
    "0113_cooperative_rebalance/b_subscribe_with_cb_test": DATA,
    "0113_cooperative_rebalance/o_java_interop": "runs a Java client that librdkafka's authors build",
    "0113_cooperative_rebalance/u_multiple_subscription_changes": DATA,
    "0113_cooperative_rebalance/v_commit_during_rebalance": DATA,
    "8000_idle": "does nothing, for a person who looks at it",
    "0000_unittests": "asks no server, or librdkafka's own mock of one",
}
WITHOUT_AUTOCREATE: Final = ("0107_topic_recreate", "0111_delay_create_topics")
"""Of those that are run where there are records: whose scenario is `noautocreate`."""
RULES: Final[Sequence[tuple[str, str]]] = (
    (r"^\w*share_consumer", SHARE),
    (r"^\w*(transactions|txn|idempotence)", TRANSACTIONS),
    (r"^\w*(ssl|sasl|auth|oidc)", SECURED),
    (r"^\w*_mock", "asks no server, or librdkafka's own mock of one"),
    (r"test_produce|rd_kafka_produce|producev|->produce\(|create_producer|produce_msgs", DATA),
    (r"test_mock_cluster_new|mock_cluster", "asks no server, or librdkafka's own mock of one"),
)
"""Words in the names or sources of the other tests, and the reason that follows from them; the first one counts."""
