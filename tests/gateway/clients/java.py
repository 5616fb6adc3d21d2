# SPDX-License-Identifier: Apache-2.0
"""Kafka's own Java client, as its console tools: produces slowly, and reads what it produced as a member of a group.

The tools' output goes where this process's does, but for the records.
"""

import subprocess
import sys
import threading
import time

from tests.gateway.clients.options import parse_options, tell
from tests.kafka.jars import require_kafka_classpath
from tests.support.processes import tied_to_us

_JAVA = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"]


def main() -> None:
    """Do it, and say what was read."""
    options = parse_options()
    common = ["--bootstrap-server", options.bootstrap, "--topic", options.topic]
    refresh = f"metadata.max.age.ms={options.refresh_ms}"
    java = [*_JAVA, require_kafka_classpath()]
    producer = subprocess.Popen(
        tied_to_us(
            [
                *java,
                "org.apache.kafka.tools.ConsoleProducer",
                *common,
                *("--producer-property", refresh, "--producer-property", "linger.ms=0"),
            ]
        ),
        stdin=subprocess.PIPE,
        stdout=sys.stderr,
        text=True,
    )
    consumer = subprocess.Popen(
        tied_to_us(
            [
                *java,
                "org.apache.kafka.tools.consumer.ConsoleConsumer",
                *common,
                *("--group", options.group, "--from-beginning", "--max-messages", str(options.count)),
                *("--consumer-property", refresh, "--consumer-property", "auto.commit.interval.ms=200"),
            ]
        ),
        stdout=subprocess.PIPE,
    )

    def produce() -> None:
        assert producer.stdin is not None
        for number in range(options.count):
            producer.stdin.write(f"{number}\n")
            producer.stdin.flush()
            time.sleep(options.pause_ms / 1000)
        producer.stdin.close()

    producing = threading.Thread(target=produce)
    producing.start()
    read, _ = consumer.communicate()
    producing.join()
    assert producer.wait(30) == 0
    assert consumer.returncode == 0
    tell(line for line in read.splitlines() if line.isdigit())  # not what the tool says of its options


if __name__ == "__main__":
    main()
