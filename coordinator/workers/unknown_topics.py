# SPDX-License-Identifier: Apache-2.0
"""Has the cluster's topics read sooner when clients name topics that are not known yet."""

from collections.abc import Callable
from typing import Final

from coordinator.catalogue.names import NAME_LENGTH_MAX
from coordinator.workers import messages

MISSED_AGAIN_S: Final = 5.0
TOGETHER_S: Final = 0.02
"""The seconds in which all missed topics share one message to the supervisor."""
MISSED_MAX: Final = 10_000
"""The number of missed topics that are remembered for MISSED_AGAIN_S; further ones ask for no refresh."""


class UnknownTopicRefresher:
    """Asks for a refresh of the topics when clients name one that the catalogue lacks but the cluster may have."""

    def __init__(
        self,
        now_s: Callable[[], float],
        later: Callable[[float, Callable[[], None]], object],
        send: Callable[[messages.FromWorker], None],
    ) -> None:
        self._now_s = now_s
        self._later = later
        self._send = send
        self._again_s: dict[str | bytes, float] = {}  # by name or id, oldest first
        self._is_sent = True  # whether the supervisor knows of all missed topics

    def refresh_for_topic(self, topic: str | bytes) -> None:
        """Ask for a refresh of the topics, unless this topic has caused a refresh within the last MISSED_AGAIN_S.

        A name that is too long for a topic is ignored.
        """
        now_s, again_s = self._now_s(), self._again_s
        while again_s:
            oldest, at_s = next(iter(again_s.items()))
            if at_s > now_s:
                break
            del again_s[oldest]
        if topic in again_s or len(again_s) >= MISSED_MAX or len(topic) > NAME_LENGTH_MAX:
            return
        again_s[topic] = now_s + MISSED_AGAIN_S
        if self._is_sent:
            self._is_sent = False
            self._later(TOGETHER_S, self._ask_for_topics)

    def _ask_for_topics(self) -> None:
        self._is_sent = True
        self._send(messages.AskTopicRefresh())
