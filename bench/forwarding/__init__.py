# SPDX-License-Identifier: Apache-2.0
"""What a gateway costs: the same bytes from and to one real Kafka broker, directly, through haproxy, and through us.

`ways` are what is compared. `streaming` fetches as much as comes, `asking` one record at a time, both with raw frames
(`frames`), so that the driver costs little itself; `tools` has Kafka's own tools produce and consume; `turns` looks at
the coordinator meanwhile. All take turns over the ways, so that what else the machine does hits all of them alike.
"""
