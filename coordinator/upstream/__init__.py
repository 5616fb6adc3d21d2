# SPDX-License-Identifier: Apache-2.0
"""The client of the Kafka cluster behind a gateway, which uses the node's own credentials.

`config` has its settings, `errors` its errors. `broker_connection` is one connection, over aiokafka's; `cluster` finds
brokers and coordinators and sends them requests. Through it `topics`, `groups` and `end_offsets` each send requests
about one kind of thing, and `monitor` follows brokers and topics. Pure, without I/O: `topic_diff` (what changed between
two looks at the topics).

Only `broker_connection` and `connect_errors` import aiokafka; a node without `upstream.bootstrap.servers` imports
neither.
"""
