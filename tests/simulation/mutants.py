# SPDX-License-Identifier: Apache-2.0
"""Bugs of the kinds that such systems have had, each a change of a line or two of ours, for the simulation to find."""

from typing import Final

from tests.simulation.gateway.mutants import GATEWAY_MUTANTS
from tests.simulation.planting import Mutant

MUTANTS: Final = (
    Mutant(
        "a reply leaves before its flush",
        "coordinator.net.connection",
        "if not replies and self._replies.check_durable_or_wait(ctx, self):",
        "if not replies:",
    ),
    Mutant(
        "a closed connection drops its backlog",
        "coordinator.net.connection",
        "        if self._backlog:\n            self.go_on_soon()\n\n    def _end_parked",
        "        self._backlog.clear()\n\n    def _end_parked",
    ),
    Mutant(
        "a closed connection drops its long request",
        "coordinator.net.connection",
        "            self._long.go_on_soon()  # it may have waited for the budget\n",
        "            self._long.drop()\n            self._parked = None\n",
        seed=5,
    ),
    Mutant(
        "a leave waits behind the join of a closed connection",
        "coordinator.net.connection",
        "(ctx.frame is not None or ctx.api.waits_for_members):",
        "ctx.frame is not None:",
    ),
    Mutant(
        "a long commit is cut",
        "coordinator.api.offset_commit",
        "    error = _commit(node.group_access, request, ctx, decided, node.group_access.clock.now())\n    yield\n",
        "    stored, error = decided.stored, _NONE\n"
        "    for each in stored:\n"
        "        for odd in (0, 1):\n"
        "            values = {key: each.values[key] for key in each.values if key % 2 == odd}\n"
        "            decided.stored = [TopicOffsetCommits(each.group, each.topic, values)]\n"
        "            error = _commit(node.group_access, request, ctx, decided, node.group_access.clock.now())\n"
        "            yield\n",
        seed=28,
    ),
    Mutant(
        "a durable write is not synced",
        "storage.journal.journal",
        "self._file.pwrite_durable(frame, self._end)",
        "self._file.pwrite(frame, self._end)",
        seed=3,
    ),
    Mutant(
        "a failed flush counts as done",
        "coordinator.logs.files.committer",
        "if isinstance(result, BaseException):\n"
        "            self._fail(writers, tickets, translate_to_log_error(result))\n            return",
        "",
    ),
    Mutant(
        "a reload does not wait for what was appended",
        "coordinator.logs.files.file_log",
        "await wait_for_ticket_end(writer.newest)",
        "await asyncio.sleep(0)",
        seed=6,
    ),
    Mutant(
        "a partition serves before it is loaded",
        "coordinator.logs.files.file_log",
        "while offset < self.end_offset:",
        "while offset < self.end_offset // 2:",
    ),
    Mutant(
        "a failed flush leaves the groups as they are",
        "coordinator.partitions.leadership",
        "        for partition in partitions:\n            self._drop(partition)\n",
        "        for partition in partitions:\n"
        "            asyncio.create_task(self._write_on(manager.owned_partitions[partition]))\n"
        "            continue\n",
        (
            "    @property\n    def has_loaded_all_partitions(self)",
            "    async def _write_on(self, shard):\n"
            "        from coordinator.tickets import DURABLE\n"
            "        await self._log.wait_until_available(shard.partition)\n"
            "        claim = await self._log.claim(shard.partition, self.epochs[shard.partition])\n"
            "        shard.appender = claim.open_writer()\n"
            "        for group in shard.groups.values():\n"
            "            group.ticket = DURABLE\n\n"
            "    @property\n    def has_loaded_all_partitions(self)",
        ),
    ),
    Mutant(
        "a deleted group leaves its offsets in the log",
        "coordinator.partitions.manager",
        "self.carry_out_outcome(kept, outcome)\n            self.stats.offset_deletions",
        "self.stats.offset_deletions",
    ),
    Mutant(
        "a commit of an old generation is taken",
        "coordinator.groups.classic.group",
        "if generation_id != self.generation_id:\n                return ErrorCode.ILLEGAL_GENERATION",
        "",
    ),
    Mutant(
        "a heartbeat does not renew the session",
        "coordinator.groups.classic.heartbeat_and_leave",
        "    member.session_deadline_ms = now_mono_ms + member.session_timeout_ms\n    return",
        "    return",
    ),
    Mutant(
        "a session is armed with the wall clock",
        "coordinator.groups.classic.rebalance",
        "member.session_deadline_ms = now.mono + member.session_timeout_ms",
        "member.session_deadline_ms = now.wall + member.session_timeout_ms",
        seed=6,
    ),
    Mutant(
        "a join phase has no end",
        "coordinator.groups.classic.rebalance",
        "    group.join_deadline_ms = deadline_ms\n    group.schedule_wakeup_by(deadline_ms)",
        "    group.join_deadline_ms = NEVER",
    ),
    Mutant(
        "any member's assignment is taken",
        "coordinator.groups.classic.sync",
        "if group.is_leader(request.member_id):\n        _stabilise",
        "if True:\n        _stabilise",
    ),
    Mutant(
        "a generation comes twice",
        "coordinator.groups.classic.rebalance",
        "group.generation_id += 1\n    group.protocol_name = protocol",
        "group.generation_id += group.generation_id % 3 != 1\n    group.protocol_name = protocol",
    ),
    Mutant(
        "a loaded member has no assignment",
        "coordinator.groups.classic.replay",
        "        assignment=recorded.assignment,\n",
        "",
    ),
    Mutant(
        "recovery does not read the journal",
        "storage.recovery.recovery",
        "        for frame in journal.frames:\n            all_synced",
        "        for frame in journal.frames[:-1]:\n            all_synced",
    ),
    Mutant(
        "a checkpoint drops the journal before the segments are synced",
        "storage.segment_write_behind",
        "            self._sync_all()\n            self._journals.remove_all_retired(flush)",
        "            self._journals.remove_all_retired(flush)",
        seed=3,
    ),
    Mutant(
        "compaction drops the newest of each key",
        "storage.cleaner.offset_map",
        "return offset >= self._offsets.get(key, -1)",
        "return offset < self._offsets.get(key, -1)",
    ),
    Mutant(
        "a flush that fails does not refuse the replies that wait",
        "coordinator.net.replies",
        "            self._refuse(ctx, blocker.error, connection)\n        elif self.awaited",
        "            return True\n        elif self.awaited",
        ("            error = ctx.find_error()\n", "            error = None\n"),
    ),
    Mutant(
        "a replaced static member keeps its old id",
        "coordinator.groups.classic.metadata",
        "        if self.leader_id == old_member_id:\n            self.leader_id = new_member_id\n        if old",
        "        if old",
        seed=4,
    ),
    Mutant(
        "replies leave in the wrong order",
        "coordinator.net.replies",
        "out.append(frame)",
        "out.insert(0, frame)",
        seed=3,
    ),
    Mutant(
        "a member that is removed leaves its vote",
        "coordinator.groups.classic.metadata",
        "            self._vote(member, -1)\n            if member.awaiting_join",
        "            if member.awaiting_join",
    ),
    Mutant(
        "expiry goes by the monotonic clock",
        "coordinator.jobs.expiry_task",
        "now_wall_ms = clock.wall_ms()",
        "now_wall_ms = clock.mono_ms()",
        seed=2,
    ),
    Mutant(
        "what members consume expires",
        "coordinator.groups.classic.group",
        "return _commit_timestamp, consumed",
        "return _commit_timestamp, _NO_TOPICS",
        seed=4,
    ),
    Mutant(
        "an Empty group's offsets expire by their commits",
        "coordinator.groups.classic.group",
        "(_commit_timestamp if since is None else lambda _: since), _NO_TOPICS",
        "_commit_timestamp, _NO_TOPICS",
        seed=18,
    ),
    Mutant(
        "a clock that jumped is believed at once",
        "coordinator.jobs.wall_clock",
        "if abs(jump_ms) <= self._tolerance_ms:",
        "if True:",
        seed=26,
    ),
    Mutant(
        "a group's tombstone comes before those of its offsets",
        "coordinator.groups.offsets.expiry_and_deletion",
        "[*records, *group.make_group_metadata_tombstones()]",
        "[*group.make_group_metadata_tombstones(), *records]",
        seed=2,
    ),
    Mutant(
        "a commit is taken in a rebalance",
        "coordinator.groups.classic.group",
        "        if state is _COMPLETING:\n            return ErrorCode.REBALANCE_IN_PROGRESS\n",
        "",
    ),
    Mutant(
        "a read waits for no flush",
        "coordinator.partitions.group_access",
        "        waiting.add_ticket(kept.ticket)\n        return kept",
        "        return kept",
        seed=3,
    ),
    Mutant(
        "deadlines are judged before clients are heard",
        "coordinator.net.input_barrier",
        "        self._wait(TURNS, then)",
        "        then()",
    ),
    Mutant(
        "a partition is released with batches that wait in memory",
        "storage.log_manager",
        "            self._writer.write_partition_queue(partition)\n"
        "            log = partitions.get_or_create_log(partition)\n",
        "            log = partitions.get_or_create_log(partition)\n",
        seed=2,
    ),
    Mutant(
        "a dead worker's journal is not settled",
        "coordinator.workers.supervisor",
        "failed = await self._settling.replay_journal_and_list_damaged(node, had)",
        "failed: list[int] = []",
        seed=2,
    ),
    Mutant(
        "nodes are told to lead before the epoch is on disk",
        "coordinator.workers.worker_order_sender",
        "if any(isinstance(command, LeadOrder) for command in batch):",
        "if not batch:",
        seed=2,
    ),
    Mutant(
        "a partition moves while its node still serves it",
        "coordinator.workers.partition_order_handler",
        "        self._leadership.resign(resign.partition, resign.leader_epoch)\n",
        "",
        seed=7,
    ),
    Mutant(
        "a deleted topic's offsets stay where the partition loads",
        "coordinator.partitions.manager",
        "in (*self.owned_partitions, *self.loading_partitions, *self.unreadable_partitions):",
        "in self.owned_partitions:",
        seed=3,
    ),
    Mutant(
        "a dead leader's successor does not hear which topics went",
        "coordinator.workers.worker_order_sender",
        "return self._store.deletions.undropped_deletions_after(partition, sent)",
        "return []",
        seed=2,
    ),
    Mutant(
        "a deletion that was not carried out is forgotten at a start",
        "coordinator.catalogue.store",
        "self.deletions = DeletedTopicsWithOffsets(offsets_partitions) if found is None else found",
        "self.deletions = DeletedTopicsWithOffsets(offsets_partitions)",
        seed=17,
    ),
    Mutant(
        "a group that was taken over is taken over again",
        "coordinator.partitions.group_adoption",
        "        if ledger.is_ours(group_id):\n            waiting.add_ticket(ledger.ticket)\n",
        "        if False:\n            waiting.add_ticket(ledger.ticket)\n",
    ),
    Mutant(
        "a group that was given back stays",
        "coordinator.partitions.group_adoption",
        "            if kept is not None:\n                shard.hide_group_until_deleted(kept)\n",
        "",
    ),
    Mutant(
        "a closed group takes commits",
        "coordinator.migration.ledger",
        "return self.closed.get(group_id, now_ms) > now_ms",
        "return False",
        seed=4,
    ),
    Mutant(
        "a new segment's name is not made durable",
        "storage.partition.log",
        "            self._fs.fsync_dir(self.directory)\n            self._fs.fsync_dir(self.directory.parent)\n",
        "",
        seed=38,
    ),
    Mutant(
        "a new journal's name is not made durable",
        "storage.journal.journal",
        "            fs.fsync_dir(directory)\n            return cls(",
        "            return cls(",
        seed=5,
    ),
    Mutant(
        "a repair is tried only once",
        "coordinator.logs.files.file_log",
        "            await asyncio.sleep(self.retry_s)\n        self.repairs += 1",
        "            return\n        self.repairs += 1",
        seed=2,
    ),
    Mutant(
        "a partition that could not be read is given up",
        "coordinator.partitions.leadership",
        "        await asyncio.sleep(self.retry_s)\n        del self.failed_partitions[partition]",
        "        return False\n        del self.failed_partitions[partition]",
    ),
    Mutant(
        "a half-done swap is dropped though the old segments went",
        "storage.partition.swap",
        "        fs.rename(directory / name, directory / name.removesuffix(SWAP_SUFFIX))",
        "        fs.remove(directory / name)",
        seed=10,
    ),
    Mutant(
        "a group that begins gets no mark",
        "coordinator.migration.ledger",
        "        return self.make_mark(group_id, Mark.BEGUN, now_wall_ms) if is_first else None\n",
        "        self.confirmed_absent.pop(group_id, None)\n        return None\n",
    ),
    Mutant(
        "a node alone leaves journals of several alone",
        "storage.recovery.opening",
        "        others = [each for each in find_journal_directories(fs, data_dir) if each != directory.journal_dir]\n",
        "        others = []\n",
        seed=5,
    ),
    *GATEWAY_MUTANTS,
)
