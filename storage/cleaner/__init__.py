# SPDX-License-Identifier: Apache-2.0
"""Compaction: keeps the newest value of every key, as Kafka's LogCleaner does.

- `filtering` rewrites one batch; `transactions` knows which batches were aborted, and which markers may go
- `offset_map` holds the newest offset of each key, within a bound
- `partition_cleaning` puts these together and writes the cleaned files; it runs in a process of its own (`child`)
- `plan` and `log_cleaner` choose what is cleaned next and swap the result in
"""
