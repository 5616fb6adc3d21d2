# SPDX-License-Identifier: Apache-2.0
"""A broker that has gone from the metadata is shown as away, for a while: or no alert on it could ever fire."""

from coordinator.upstream.cluster import UpstreamBroker
from coordinator.upstream.silent_brokers import MISSED_S, MissedBrokers

ONE, TWO, THREE = (UpstreamBroker(node_id, "kafka", 9092 + node_id) for node_id in (1, 2, 3))


def by_id(*brokers: UpstreamBroker) -> dict[int, UpstreamBroker]:
    return {broker.node_id: broker for broker in brokers}


def test_a_broker_that_has_gone_is_missed_until_it_is_back() -> None:
    missed = MissedBrokers(lambda: 0.0)
    missed.change(by_id(ONE, TWO, THREE))
    assert missed.brokers() == []
    missed.change(by_id(THREE))
    assert missed.brokers() == [ONE, TWO]
    missed.change(by_id(TWO, THREE))
    assert missed.brokers() == [ONE]
    missed.change(by_id(UpstreamBroker(1, "elsewhere", 1), TWO, THREE))
    assert missed.brokers() == []


def test_a_broker_that_was_taken_out_is_missed_no_longer_than_that() -> None:
    now_s = 100.0
    missed = MissedBrokers(lambda: now_s)
    missed.change(by_id(ONE, TWO))
    missed.change(by_id(TWO))
    now_s += MISSED_S / 2
    missed.change(by_id(TWO, THREE))
    now_s += MISSED_S / 2 - 1
    assert missed.brokers() == [ONE]
    now_s += 1
    assert missed.brokers() == []
