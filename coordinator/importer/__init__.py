# SPDX-License-Identifier: Apache-2.0
"""The import of groups and offsets from a Kafka broker that has been stopped (`groupkeeper import`).

`broker_directories` finds what the broker's log directories hold, `survey` reads it, `target` makes a data directory of
it. Nothing is written in the broker's directories.

The partitions are copied as they are, and the data directory takes on the broker's number of them. To place the groups
by another number would lose what cannot be split: open transactions, their markers, and records of kinds that are not
served here. The directory could not go back to its broker, either.
"""
