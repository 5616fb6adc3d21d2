# SPDX-License-Identifier: Apache-2.0
"""Random input, the same for the same seed: from noise to well-formed requests with values that no client sends."""

import os
import random
import sys
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from tests.net import requests
from tests.net.requests import EVERY_REQUEST
from tests.protocol.schemas import FIXED, INT_BITS, Case, present

SEED_VARIABLE: Final = "GROUPKEEPER_NONSENSE_SEED"
NAMES: Final = (
    *("", "ab", "g", "\0", "\U0001f980", "x" * 300),
    *(requests.OTHER_TOPIC, "__consumer_offsets", "range", "consumer"),
)


def generator(salt: int = 0) -> random.Random:
    """The same in every run, unless the environment names another seed; says which on standard error."""
    seed = int(os.environ.get(SEED_VARIABLE) or 20_260_729)
    sys.stderr.write(f"replay with {SEED_VARIABLE}={seed}\n")
    return random.Random(seed + salt)


def noise(rng: random.Random) -> bytes:
    """Anything; nearly always a frame length that cannot be."""
    return rng.randbytes(rng.randrange(1, 200))


def noise_in_a_frame(rng: random.Random) -> bytes:
    """Anything, with its right length before it."""
    return requests.framed(rng.randbytes(rng.randrange(1, 200)))


def noise_behind_a_header(rng: random.Random) -> bytes:
    """A good header, and anything behind it."""
    asked = rng.choice(EVERY_REQUEST)
    head = requests.header(asked.api, asked.version)
    body = (
        rng.randbytes(rng.randrange(200)) if rng.random() < 0.5 else bytes(rng.choices((0, 1, 2, 255), k=99))
    )
    return requests.framed(head + body)


def damaged_request(rng: random.Random) -> bytes:
    """A good request with some bytes changed, taken out or put in; its length is right."""
    asked = rng.choice(EVERY_REQUEST)
    frame = bytearray(requests.sample_request(asked.api, asked.version)[4:])
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(8, len(frame)) if len(frame) > 8 else 0
        match rng.randrange(3):
            case 0:
                frame[place] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            case 1:
                del frame[place]
            case _:
                frame.insert(place, rng.randrange(256))
    return requests.framed(bytes(frame))


def odd_request(rng: random.Random) -> bytes:
    """A request that can be read, with values from the edges of what its fields can hold."""
    asked = rng.choice(EVERY_REQUEST)
    schema = Case(asked.api, "request", asked.version).schema
    return requests.build(asked.api, asked.version, _values(rng, schema, asked.version))


Make = Callable[[random.Random], bytes]
EVERY_KIND: Final[tuple[Make, ...]] = (
    noise,
    noise_in_a_frame,
    noise_behind_a_header,
    damaged_request,
    odd_request,
)


def _values(rng: random.Random, schema: Any, version: int) -> dict[str, Any]:
    return {field.name: _value(rng, field, version) for field in present(schema, version)}


def _value(rng: random.Random, field: Any, version: int) -> Any:
    may_be_null = field.nullable_for_version_q(version) or (field.is_struct() and field.tag is not None)
    if may_be_null and rng.random() < 0.3:
        return None
    count = rng.choice((0, 1, 1, 1, 2, 5))
    if field.is_struct_array():
        return [_values(rng, field.array_of, version) for _ in range(count)]
    if field.is_array():
        return [_scalar(rng, field.array_of.type_str) for _ in range(count)]
    if field.is_struct():
        return _values(rng, field, version)
    return _scalar(rng, field.type_str)


def _scalar(rng: random.Random, kind: str) -> Any:
    if kind in INT_BITS:
        top = 1 << (INT_BITS[kind] - 1)
        likely = (-top, top - 1, -1, 0, 1, 2, 10, min(10_000, top - 1), rng.randrange(-top, top))
        return rng.choice(likely)
    if kind in FIXED:
        return rng.choice((0, 1, 0xFFFF)) if kind == "uint16" else rng.random() < 0.5
    match kind:
        case "string":
            return rng.choice(NAMES)
        case "uuid":
            return rng.choice((None, UUID(int=rng.getrandbits(128))))
        case "bitfield":
            return rng.choice((None, {3}))
        case _:
            return rng.choice((b"", b"m", b"\x00\x01\x00\x00\x00\x00", rng.randbytes(50)))
