# SPDX-License-Identifier: Apache-2.0
"""Consumer groups as pure state machines: no I/O, no clock, no randomness, no asyncio.

Theory of operation
-------------------
Three parts are separate. `classic` has the members of a group of the classic protocol, `offsets` the committed offsets
of a group of any kind, and their runner (`partitions.shard.KeptGroup`) holds both under one id and uses a group through
the small protocol of `group`. Their state is of two kinds:

* Hard state is what the log holds: the generation that was stored last, with its members and their assignments, and
  the committed offsets. It changes only through the functions of `replay`, on the live path and while loading
  alike. A group at rest, Empty or Stable, equals its newest record.
* Soft state is never in the log: the waiting joins and syncs, the ids that were given out, the deadlines, the
  protocols that members offer, and a generation that is being formed. Handlers change it directly.

A handler (`join.join`, `sync.sync`, `membership.heartbeat`, `expiry.expired_offsets`, ...) gets the group, a request,
the caller and the time. It returns an `Outcome`: the answer, records to append, replies to send, and events worth a log
line. Its runner appends the records, all or none, applies them and holds the answers until they are durable.

Deadlines are data: `group.wakeup_ms` is the earliest moment at which `timeouts.expire` has to be called.
"""
