# SPDX-License-Identifier: Apache-2.0
"""Stands in for Kafka's kafka-acls.sh, which librdkafka's tests call: the flags that they use, by confluent-kafka.

Its Java takes longer to start on a busy machine than those tests have.
"""

import argparse

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

SOON_S = 120


def main() -> None:
    """Add or remove one rule on a topic, as the flags say."""
    parser = argparse.ArgumentParser(prog="kafka-acls.sh")
    parser.add_argument("--bootstrap-server", required=True)
    what = parser.add_mutually_exclusive_group(required=True)
    for name in ("--add", "--remove"):
        what.add_argument(name, action="store_true")
    who = parser.add_mutually_exclusive_group(required=True)
    for name in ("--allow-principal", "--deny-principal"):
        who.add_argument(name)
    for name in ("--allow-host", "--deny-host"):
        parser.add_argument(name)
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--operation", required=True)
    parser.add_argument("--topic", required=True)
    options = parser.parse_args()
    rule = (
        ResourceType.TOPIC,
        options.topic,
        ResourcePatternType.LITERAL,
        options.allow_principal or options.deny_principal,
        options.allow_host or options.deny_host or "*",
        AclOperation[options.operation.upper()],
        AclPermissionType.ALLOW if options.allow_principal else AclPermissionType.DENY,
    )
    admin = AdminClient({"bootstrap.servers": options.bootstrap_server})
    if options.add:
        (added,) = admin.create_acls([AclBinding(*rule)]).values()
        added.result(SOON_S)
    else:
        (removed,) = admin.delete_acls([AclBindingFilter(*rule)]).values()
        removed.result(SOON_S)


if __name__ == "__main__":
    main()
