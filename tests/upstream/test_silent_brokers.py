# SPDX-License-Identifier: Apache-2.0
"""A broker that has gone from the metadata is shown as away, for a while: or no alert on it could ever fire."""

from coordinator.upstream.cluster import UpstreamBroker
from coordinator.upstream.departed_brokers import MISSED_S, DepartedBrokers

ONE, TWO, THREE = (UpstreamBroker(node_id, "kafka", 9092 + node_id) for node_id in (1, 2, 3))


def by_id(*brokers: UpstreamBroker) -> dict[int, UpstreamBroker]:
    return {broker.node_id: broker for broker in brokers}


def test_a_broker_that_has_gone_is_missed_until_it_is_back() -> None:
    missed = DepartedBrokers(lambda: 0.0)
    missed.set_listed_brokers(by_id(ONE, TWO, THREE))
    assert missed.list_departed() == []
    missed.set_listed_brokers(by_id(THREE))
    assert missed.list_departed() == [ONE, TWO]
    missed.set_listed_brokers(by_id(TWO, THREE))
    assert missed.list_departed() == [ONE]
    missed.set_listed_brokers(by_id(UpstreamBroker(1, "elsewhere", 1), TWO, THREE))
    assert missed.list_departed() == []


def test_a_broker_that_was_taken_out_is_missed_no_longer_than_that() -> None:
    now_s = 100.0
    missed = DepartedBrokers(lambda: now_s)
    missed.set_listed_brokers(by_id(ONE, TWO))
    missed.set_listed_brokers(by_id(TWO))
    now_s += MISSED_S / 2
    missed.set_listed_brokers(by_id(TWO, THREE))
    now_s += MISSED_S / 2 - 1
    assert missed.list_departed() == [ONE]
    now_s += 1
    assert missed.list_departed() == []
