# SPDX-License-Identifier: Apache-2.0
"""Follows the Kafka cluster behind a gateway: its topics go to the catalogue, its brokers to the gateways.

The topics seen last are on disk, so a start without the cluster serves the groups that exist. A cluster that stays
unusable however long one waits ends the start; one that does not answer yet is tried until it does.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from coordinator.catalogue import upstream_cluster_id_file
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.store import CatalogueStore
from coordinator.cluster_requests.model import TopicPartition
from coordinator.config import Address, Settings
from coordinator.runtime.io_thread import BlockingCallThread
from coordinator.runtime.tasks import Tasks
from coordinator.telemetry.logs import get_logger
from coordinator.topology import view
from coordinator.topology.gateway_view import BrokerState, UpstreamState
from coordinator.upstream.cluster import UpstreamBroker, UpstreamCluster
from coordinator.upstream.config import config_from
from coordinator.upstream.departed_brokers import REASON, DepartedBrokers
from coordinator.upstream.end_offsets import UpstreamEnds
from coordinator.upstream.errors import UpstreamError
from coordinator.upstream.monitor import UpstreamMonitor
from coordinator.upstream.topic_diff import SeenTopic, TopicDiff
from coordinator.workers.gateway_process_pool import ClusterUnusable
from coordinator.workers.supervisor_topic_changes import apply_all_or_none_in_steps
from coordinator.workers.topic_diff_to_changes import compute_changes, with_left_out_topics
from storage.disk.filesystem import FileSystem, read_file
from storage.errors import StorageError

log = get_logger("upstream")

FIRST_LOOK_S: Final = 10.0
"""The seconds that a start waits for the cluster before it goes on without."""
PROBE_S: Final = 5.0
"""The seconds between two probes of each broker, and the most that its response may take."""


class TopicsNotStored(UpstreamError):
    """The cluster's topics could not be stored; the next refresh finds the same changes again."""


class UpstreamSync:
    """Follows the cluster, from `connect` until `close`."""

    def __init__(
        self,
        settings: Settings,
        store: CatalogueStore,
        fs: FileSystem,
        io: BlockingCallThread,
        tasks: Tasks,
        on_changed: Callable[[], None],
    ) -> None:
        """`on_changed` is called when `brokers` or `state` have changed; `tasks` are the supervisor's. Blocks.

        Raises ClusterUnusable, ConfigError, and StorageError.
        """
        self._settings = settings
        self._store = store
        self._fs = fs
        self._io = io
        self._tasks = tasks
        self._following: list[asyncio.Task[None]] = []
        self._on_changed = on_changed
        self._noted = upstream_cluster_id_file.read(fs, settings.data_dir)
        if self._noted is None and store.catalogue.totals.topics:
            raise ClusterUnusable(
                "upstream.bootstrap.servers: data.dir holds topics of a node that had no cluster behind it; "
                "start a gateway with an empty directory"
            )
        self._cluster = UpstreamCluster(
            config_from(settings),
            read=partial(read_file, fs),
            ours=[Address(settings.listen.host, settings.listen.port + n) for n in range(settings.workers)],
            cluster_id=self._noted,
        )
        self._monitor = UpstreamMonitor(
            self._cluster,
            {
                topic.name: SeenTopic(topic.id, topic.partitions)
                for topic in store.catalogue.snapshot_topics()
            },
            refresh_ms=settings.upstream_metadata_refresh_ms,
            on_topics=self._topics_changed,
            on_brokers=self._brokers_changed,
        )
        self._ends = UpstreamEnds(self._cluster)
        self.brokers: tuple[view.Broker, ...] = ()
        """The brokers of the cluster, ordered by id."""
        self.state = UpstreamState(self._noted)
        self._left_out: dict[str, SeenTopic] = {}  # topics of the cluster that are not in the catalogue
        self._missed = DepartedBrokers(asyncio.get_running_loop().time)
        self._errors: dict[int, str] = {}  # by id, of brokers that do not answer

    async def start_following(self) -> None:
        """Fetch the cluster's metadata and keep following it. Raises ClusterUnusable; a silent cluster is no error."""
        self._log_limits()
        first = self._tasks.start(self._first_look(), "first look at the cluster")
        # A first look that takes longer is not cancelled: the topics that it finds may be on their way to the disk.
        await asyncio.wait([first], timeout=FIRST_LOOK_S)
        error = first.result() if first.done() else None
        if error is not None and error.lasting:
            await self._cluster.close()
            raise ClusterUnusable(str(error))
        if error is not None or not first.done():
            self._say("upstream.bootstrap.servers: no answer yet" if error is None else str(error))
            log.warning("the cluster cannot be reached yet", reason=str(error or "no answer"))
        self._following = [
            self._tasks.start(self._follow(first), "follow the cluster"),
            self._tasks.start(self._probe(), "probe the cluster's brokers"),
        ]

    async def _first_look(self) -> UpstreamError | None:
        try:
            await self._cluster.connect()
            await self._monitor.refresh_and_report_changes()
        except UpstreamError as error:
            return error
        return None

    async def _follow(self, first: asyncio.Task[UpstreamError | None]) -> None:
        await first
        await self._monitor.run()

    def _log_limits(self) -> None:
        """Log what clients of this cluster cannot do through a gateway, before they find that out one by one."""
        protocol = self._settings.upstream_security_protocol
        if protocol.startswith("SASL_"):
            log.info(
                "GSSAPI (Kerberos) does not pass a gateway: its tickets are for the brokers' own names; "
                "PLAIN, SCRAM and OAUTHBEARER do"
            )
        if protocol.endswith("SSL"):
            log.info(
                "client certificates do not pass a gateway: the cluster sees no client's, nor the gateway's own"
            )

    def refresh_soon(self) -> None:
        """Refresh the metadata at once, because a client names a topic or broker that is not known."""
        self._monitor.refresh_soon()

    async def fetch_end_offsets(
        self, partitions: Mapping[str, tuple[int, ...]]
    ) -> dict[str, dict[int, tuple[int, int]]] | None:
        """Return high watermark and last stable offset by topic and partition; None if the cluster cannot be asked."""
        wanted = [TopicPartition(topic, each) for topic, indexes in partitions.items() for each in indexes]
        try:
            high = await self._ends.fetch_end_offsets(wanted)
            stable = await self._ends.fetch_end_offsets(high, read_committed=True)
        except UpstreamError as error:
            log.debug("the cluster does not say where its partitions end", reason=str(error))
            return None
        found: dict[str, dict[int, tuple[int, int]]] = {}
        for place, end in high.items():
            if place in stable:
                found.setdefault(place.topic, {})[place.partition] = (max(end, stable[place]), stable[place])
        return found

    async def close(self) -> None:
        """Stop following the cluster, and close the connections to it."""
        for task in self._following:
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)
        await self._cluster.close()

    # --- what was seen

    async def _topics_changed(self, change: TopicDiff) -> None:
        """Apply the cluster's changes of topics to the catalogue. Raises TopicsNotStored."""
        try:
            await self._note_cluster()
        except StorageError as error:
            raise TopicsNotStored(str(error)) from None
        done: asyncio.Future[bool | BaseException] = asyncio.get_running_loop().create_future()
        wanted = with_left_out_topics(self._left_out, change)
        changes, left_out = compute_changes(self._store.catalogue, wanted)
        if not self._left_out.keys() >= set(left_out):
            log.error(
                "topics of the cluster are left out: their names differ in . and _ only, or are none",
                count=len(left_out),
                topics=left_out[:10],
            )
        pieces = list(changes.split_into_pieces())
        self._store.submit_stepwise_edit(partial(apply_all_or_none_in_steps, pieces), done.set_result)
        outcome = await done
        if outcome is not True:
            raise TopicsNotStored(f"the topics of the cluster cannot be kept: {outcome or 'they do not fit'}")
        self._left_out = {name: wanted.created[name] for name in left_out}
        log.info(
            "the cluster's topics have changed",
            created=len(change.created),
            grown=len(change.grown),
            deleted=len(change.deleted),
        )

    async def _note_cluster(self) -> None:
        """Store the cluster's id, once, before the first of its topics."""
        cluster_id = self._cluster.cluster_id
        if self._noted is None and cluster_id is not None:
            await self._io.run_blocking(
                partial(upstream_cluster_id_file.write, self._fs, self._settings.data_dir, cluster_id)
            )
            self._noted = cluster_id

    def _brokers_changed(self, brokers: Mapping[int, UpstreamBroker]) -> None:
        self.brokers = tuple(view.Broker(b.node_id, b.host, b.port) for _, b in sorted(brokers.items()))
        self._missed.set_listed_brokers(brokers)
        log.info(
            "the cluster's brokers", brokers={b.node_id: str(Address(b.host, b.port)) for b in self.brokers}
        )
        self._errors = {node_id: error for node_id, error in self._errors.items() if node_id in brokers}
        self._say(None)
        self._on_changed()

    # --- how it is

    async def _probe(self) -> None:
        while True:
            asked = self.brokers  # `brokers` may change before all have answered
            found = await asyncio.gather(*(self._ask(broker.node_id) for broker in asked))
            self._errors = {
                broker.node_id: error for broker, error in zip(asked, found, strict=True) if error
            }
            # Before the first answer the last error stays, although no look has failed yet.
            self._say(self._monitor.failing or (None if self.brokers else self.state.error))
            await asyncio.sleep(PROBE_S)

    async def _ask(self, node_id: int) -> str | None:
        """Return why a broker does not answer, None if it does."""
        try:
            async with asyncio.timeout(PROBE_S):
                await self._cluster.fetch_encoded_metadata([], node_id=node_id)
        except UpstreamError as error:
            return str(error)
        except TimeoutError:
            return f"no answer within {PROBE_S:g} s"
        return None

    def _say(self, error: str | None) -> None:
        """Store the state of the cluster, and report it if it has changed."""
        brokers = [
            BrokerState(
                broker.node_id, str(Address(broker.host, broker.port)), self._errors.get(broker.node_id)
            )
            for broker in self.brokers
        ]
        brokers += [
            BrokerState(each.node_id, str(each.address), REASON) for each in self._missed.list_departed()
        ]
        seen = self._monitor.topics.get(OFFSETS_TOPIC)
        offsets_topic = None if seen is None else (seen.topic_id, seen.partitions)
        state = UpstreamState(self._cluster.cluster_id, error, brokers, offsets_topic)
        if state != self.state:
            self.state = state
            self._on_changed()
