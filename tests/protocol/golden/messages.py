# SPDX-License-Identifier: Apache-2.0
"""The golden messages: what Kafka 4.3 says that these bytes mean.

`python -m tests.protocol.golden.messages` renews them.
"""

import base64
import json
import random
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from protocol.apis import ApiKey
from tests.kafka.jars import kafka_classpath
from tests.protocol.schemas import (
    COLD_APIS,
    HOT_APIS,
    INT_BITS,
    Case,
    Values,
    cases,
    present,
    to_kafka_python,
)
from tests.support.apis import FIRST_FLEXIBLE, SUPPORTED

GOLDEN: Final = Path(__file__).with_name("messages.jsonl")
_READER: Final = Path(__file__).with_name("KafkaMessages.java")
_TIMEOUT_S: Final = 120
_WORDS: Final = ("", "a", "orders", "größe", "名前", "member-5f0c7e1e-8f3e", "x" * 130)


@dataclass(frozen=True)
class Golden:
    """One message: its bytes, and what Kafka reads in them."""

    case: Case
    body: bytes
    json: Values

    @property
    def values(self) -> Values:
        """The message's values by kafka-python's names."""
        return _values(self.case.schema, self.json, self.case.version)


def load() -> list[Golden]:
    """The golden messages, as they are checked in."""
    return [_parse(line) for line in GOLDEN.read_text().splitlines()]


def ask_kafka(classpath: str, messages: Iterable[tuple[Case, bytes]]) -> list[tuple[str, bytes]]:
    """What Kafka reads in these bodies, as JSON, and what it writes for that."""
    lines = [f"{int(case.api)} {case.kind} {case.version} {body.hex()}\n" for case, body in messages]
    command = ["java", "-cp", classpath, str(_READER)]
    done = subprocess.run(
        command, input="".join(lines).encode(), capture_output=True, timeout=_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    answers = [line.split("\t") for line in done.stdout.decode().splitlines()]
    return [(read, bytes.fromhex(written)) for read, written in answers]


def _parse(line: str) -> Golden:
    raw = json.loads(line)
    case = Case(ApiKey[raw["api"]], raw["kind"], raw["version"])
    return Golden(case, bytes.fromhex(raw["hex"]), raw["json"])


def _values(schema: Any, read: Values, version: int) -> Values:
    out = {}
    for field in present(schema, version):
        name = field._name[0].lower() + field._name[1:]
        if field.type_str == "bitfield":  # kafka-python renames some of these
            name = next(key for key in read if key.lower().endswith("authorizedoperations"))
        # Kafka leaves tagged fields with their default out
        out[field.name] = _value(field, read[name], version) if name in read else field.default
    return out


def _value(field: Any, read: Any, version: int) -> Any:
    if read is None:
        return None
    if field.is_struct_array():
        return [_values(field.array_of, item, version) for item in read]
    if field.is_struct():
        return _values(field, read, version)
    if field.is_array():
        return [_scalar(field.array_of.type_str, item) for item in read]
    return _scalar(field.type_str, read)


def _scalar(kind: str, read: Any) -> Any:
    if kind == "uuid":
        raw = base64.urlsafe_b64decode(read + "==")
        return UUID(bytes=raw) if any(raw) else None
    if kind == "bytes":
        return base64.b64decode(read)
    if kind == "bitfield":
        bits = {bit for bit in range(32) if read >> bit & 1}
        return None if bits == {31} else bits
    return read


# --- renewing ------------------------------------------------------------------------------------------------------


def _chosen() -> list[Case]:
    """Every version of the hot messages; of the others the ends of the range and the first flexible one."""
    chosen = cases(HOT_APIS)
    for case in cases(COLD_APIS):
        if case.version in {*SUPPORTED[case.api], FIRST_FLEXIBLE[case.api]}:
            chosen.append(case)
    return chosen


def _make(schema: Any, version: int, rng: random.Random) -> Values:
    return {field.name: _make_field(field, version, rng) for field in present(schema, version)}


def _make_field(field: Any, version: int, rng: random.Random) -> Any:
    if field.type_str == "records":
        return None  # Kafka's JSON has only their length
    if field.nullable_for_version_q(version) and rng.random() < 0.3:
        return None
    if field.is_struct_array():
        return [_make(field.array_of, version, rng) for _ in range(rng.choice([1, 2]))]
    if field.is_struct():
        return _make(field, version, rng)
    if field.is_array():
        return [_make_scalar(field.array_of.type_str, rng) for _ in range(rng.choice([0, 1, 3]))]
    return _make_scalar(field.type_str, rng)


def _make_scalar(kind: str, rng: random.Random) -> Any:
    if kind in INT_BITS:
        top = 1 << (INT_BITS[kind] - 1)
        return rng.choice([-top, -1, 0, 1, 77, top - 1, rng.randrange(-top, top)])
    return {
        "uint16": rng.randrange(1 << 16),
        "bool": rng.random() < 0.5,
        "string": rng.choice(_WORDS),
        "bytes": rng.randbytes(rng.choice([0, 5, 130])),
        "uuid": UUID(bytes=rng.randbytes(16)),
        "bitfield": {3, 8, 11},
    }[kind]


def main() -> int:
    """Write the golden messages anew."""
    classpath = kafka_classpath()
    if classpath is None:
        sys.stderr.write("needs Java 17 or later, and Maven\n")
        return 1
    rng = random.Random(4_3_0)
    messages = []
    for case in _chosen():
        drawn = _make(case.schema, case.version, rng)
        message = to_kafka_python(case.cls, case.schema, drawn, case.version)
        messages.append((case, bytes(message.encode(version=case.version))))
    with GOLDEN.open("w") as out:
        for (case, _), (read, written) in zip(messages, ask_kafka(classpath, messages), strict=True):
            line = {
                "api": case.api.name,
                "kind": case.kind,
                "version": case.version,
                "hex": written.hex(),
                "json": json.loads(read),
            }
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
