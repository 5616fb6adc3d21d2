# SPDX-License-Identifier: Apache-2.0
"""The real Kafka cluster that a gateway stands before, asked as any client would: with the node's own credentials.

`config` says where it is and how to get in, `errors` what can be wrong with that. `link` is one connection, over
aiokafka's; `cluster` finds brokers and coordinators and asks them. On it stand `topics`, `groups` and `ends`, each what
can be asked about one kind of thing, and `monitor`, which follows brokers and topics. Pure, without I/O: `differences`
(what changed between two looks at the topics), `adoption` (in which order a group moves in and out) and `lag`.

Only `link` imports aiokafka, and only a node with `upstream.bootstrap.servers` imports `link`.
"""
