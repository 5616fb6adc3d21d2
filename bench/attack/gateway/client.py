# SPDX-License-Identifier: Apache-2.0
"""Somebody else: the only member of a group, whose heartbeats and commits pass the gateway all the time."""

import time
from collections import Counter
from typing import Final, NamedTuple

from bench import wire
from bench.attack.background import Background
from bench.cluster import Address, Cluster, Peer
from bench.dialect import Topic
from bench.wire import BadReply

GROUP: Final = "well-behaved-1"
TIMEOUT_S: Final = 30.0
PAUSE_S: Final = 0.02
AGAIN_S: Final = 0.2
"""Before it connects again."""
HEARTBEAT: Final = wire.HEARTBEAT.name
COMMIT: Final = wire.OFFSET_COMMIT.name


class Answered(NamedTuple):
    """One request with a good answer."""

    api: str
    at: float
    took_s: float


class Client(Background):
    """Such a member; it joins here, and goes on in a thread until it is closed."""

    def __init__(self, bootstrap: Address, topic: Topic) -> None:
        """Raises Unprepared."""
        super().__init__()
        with Cluster(bootstrap, timeout_s=TIMEOUT_S) as cluster:
            (self._member,) = cluster.join_all(topic, [GROUP])
            self._address = cluster.look_up_coordinators([GROUP])[GROUP]
        self._dialect = cluster.dialect
        self._topic = topic
        self._offset = 0
        self.answered: list[Answered] = []
        self.errors: Counter[str] = Counter()

    def run(self) -> None:
        """Ask until the end, over another connection where one is lost."""
        while not self.over.is_set():
            try:
                with Peer(self._address, TIMEOUT_S) as peer:
                    while not self.over.wait(PAUSE_S):
                        self._ask(peer)
            except (OSError, BadReply) as error:
                self.errors[f"{type(error).__name__}: {error}"] += 1
                self.over.wait(AGAIN_S)

    def _ask(self, peer: Peer) -> None:
        heartbeat = self._dialect.heartbeat(self._member)
        began = time.monotonic()
        heartbeat.decode_good(peer.ask(heartbeat))
        self._note(HEARTBEAT, began)
        self._offset += 1
        commit = self._dialect.commit(self._topic, self._member, {0: self._offset})
        began = time.monotonic()
        reply = peer.ask(commit)
        self._note(COMMIT, began)
        self._dialect.check_commit(self._topic, [0], reply)

    def _note(self, api: str, began: float) -> None:
        now = time.monotonic()
        self.answered.append(Answered(api, now, now - began))

    def latencies_s(self, api: str, began: float, ended: float) -> list[float]:
        """How long requests of one api took that were answered in this time."""
        return [each.took_s for each in self.answered if each.api == api and began <= each.at <= ended]
