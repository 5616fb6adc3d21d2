# SPDX-License-Identifier: Apache-2.0
"""A node with so many groups, as a company could have them: some with a member, all with offsets and a known lag."""

from collections.abc import Iterator
from itertools import count, islice, product
from typing import Final

from bench.cluster import Cluster, Unprepared
from bench.dialect import Topic, nobody
from bench.wire import BadReply, Call

TOPIC: Final = "orders"
PARTITIONS: Final = 12
END: Final = 1_000_000
ENDS: Final = "orders-made"
"""The end group of all topics: a setting of the node."""
SETTINGS: Final = {"end.group": ENDS, "group.initial.rebalance.delay.ms": "0", "log.level": "warning"}
MEMBERS_MAX: Final = 200
"""The most groups that get a member, each of which needs a connection for a moment."""
_TEAMS: Final = ("billing", "shipping", "fraud", "search", "mail", "returns", "pricing", "stock")
_WORK: Final = ("worker", "indexer", "export", "alerts", "cache", "ledger", "sync", "report")
_REGIONS: Final = ("eu", "us", "ap")
_SMALL: Final = ("billing", "mailer")


def group_names(groups: int) -> list[str]:
    """The names of so many groups; one of them is the end group, and `billing` is another."""
    return [ENDS, *islice(_names(groups), groups - 1)]


def _names(groups: int) -> Iterator[str]:
    yield from _SMALL
    for number in count(1):
        for team, work, region in product(_TEAMS, _WORK, _REGIONS):
            yield (
                f"{team}-{work}-{region}-{number}" if groups > len(_TEAMS) * len(_WORK) else f"{team}-{work}"
            )


def stock(cluster: Cluster, groups: int) -> list[str]:
    """Commit offsets for so many groups, and join some of them; returns their names. Raises Unprepared."""
    topic = cluster.ensure_topic(TOPIC, PARTITIONS)
    names = group_names(groups)
    cluster.wait_until_served(names[:1], topic)
    for address, theirs in cluster.by_coordinator(names).items():
        try:
            for reply in cluster.peer(address).pipeline(_commits(cluster, topic, theirs)):
                cluster.dialect.check_commit(topic, [0], reply)
        except (OSError, BadReply) as error:
            raise Unprepared(f"filling: {error}") from error
    cluster.commit_all(topic, {ENDS: dict.fromkeys(range(PARTITIONS), END)})
    joined = [name for number, name in enumerate(names) if number % 3 == 2][:MEMBERS_MAX]
    cluster.join_all(topic, joined)
    return names


def _commits(cluster: Cluster, topic: Topic, names: list[str]) -> Iterator[Call]:
    for number, name in enumerate(names):
        behind = number * number % 97_000 if number % 4 else 0
        yield cluster.dialect.commit(topic, nobody(name), {0: END - behind})
