# SPDX-License-Identifier: Apache-2.0
"""Stands in for Kafka's kafka-topics.sh, which librdkafka's tests call: the flags that they use, by kafka-python."""

import argparse

from kafka import KafkaAdminClient
from kafka.admin import NewTopic


def main() -> None:
    """Create, alter or delete a topic, as the flags say."""
    parser = argparse.ArgumentParser(prog="kafka-topics.sh")
    parser.add_argument("--bootstrap-server", required=True)
    what = parser.add_mutually_exclusive_group(required=True)
    for name in ("--create", "--alter", "--delete"):
        what.add_argument(name, action="store_true")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, default=-1)
    parser.add_argument("--replication-factor", type=int, default=-1)
    parser.add_argument("--config", action="append", default=[])
    options = parser.parse_args()
    admin = KafkaAdminClient(bootstrap_servers=options.bootstrap_server)
    if options.create:
        config = dict(each.split("=", 1) for each in options.config)
        topic = NewTopic(options.topic, options.partitions, options.replication_factor, topic_configs=config)
        admin.create_topics([topic])
    elif options.alter:
        admin.create_partitions({options.topic: options.partitions})
    else:
        admin.delete_topics([options.topic])
    admin.close()


if __name__ == "__main__":
    main()
