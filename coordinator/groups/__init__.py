# SPDX-License-Identifier: Apache-2.0
"""Consumer groups as pure state machines: no I/O, no clock, no randomness, no asyncio.

Theory of operation
-------------------
Three things are apart. `classic` has the members of a group of the classic protocol, `offsets` what is committed in a
group of any kind, and what runs them (`partitions.shard.KeptGroup`) keeps both under one id and sees a group through
the small protocol of `group`. Two kinds of state live in them:

* Hard state is what the log holds: the generation that was stored last, with its members and their assignments, and
  the committed offsets. It changes only through the functions of `replay`, which serve the live path and loading
  alike. A group at rest, Empty or Stable, is what its newest record says.
* Soft state is never in the log: who waits in a join or a sync, which ids were given out, the deadlines, the
  protocols that members offer, and a generation that is being formed. Handlers change it directly.

A handler (`join.join`, `sync.sync`, `membership.heartbeat`, `expiry.expired_offsets`, ...) gets the group, a request,
the caller and the time. It returns an `Outcome`: the answer, records to append, replies to give, and events worth a log
line. Its runner appends the records, all or none, applies them and holds the answers until they are durable.

Deadlines go out as data: `group.wakeup_ms` is the earliest moment at which `timeouts.expire` wants to be called.
"""
