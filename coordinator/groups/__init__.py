# SPDX-License-Identifier: Apache-2.0
"""Consumer groups as pure state machines: no I/O, no clock, no randomness, no asyncio.

Theory of operation
-------------------
A `GroupMetadata` holds what Kafka calls a classic group. Two kinds of state live in it:

* Hard state is what the log holds: the last stable generation with its members and their assignments, and the
  committed offsets. It changes only through `replay.apply_group_metadata` and `replay.apply_offset_commit`,
  which serve the live path and loading alike.
* Soft state is never in the log: who waits in a join or a sync, which ids were given out, the deadlines, the
  protocols that members offer. Handlers change it directly.

A handler (`join.join`, `sync.sync`, `membership.heartbeat`, ...) gets the group, a request, the caller and the
time. It returns an `Outcome`: records to append, replies to give, and events worth a log line. Whoever runs the
handler appends the records, applies them and holds the replies until they are durable.

Deadlines go out as data: `group.wakeup_ms` is the earliest moment at which `timeouts.expire` wants to be called.
"""
