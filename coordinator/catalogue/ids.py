# SPDX-License-Identifier: Apache-2.0
"""Topic ids: 16 bytes in memory, a uuid on the wire, 22 characters of base64 in files, as in Kafka (Uuid)."""

import uuid
from collections.abc import Callable
from typing import Final

from storage.disk.properties import decode_uuid, encode_uuid

NO_ID: Final = bytes(16)
# Kafka gives 1 to __cluster_metadata and has set the rest up to 99 aside (Uuid.RESERVED).
_RESERVED_BELOW: Final = 100


def random_topic_id(random: Callable[[], uuid.UUID]) -> bytes:
    """Return a new id, out of a source of version 4 uuids.

    As in Kafka the id is not reserved, and its text does not start with '-', which a tool could take for a flag.
    """
    while True:
        topic_id = random().bytes
        if int.from_bytes(topic_id, "big") >= _RESERVED_BELOW and not encode_uuid(topic_id).startswith("-"):
            return topic_id


def from_text(text: str) -> bytes:
    """Return the id behind the 22 characters of `encode_uuid`. Raises ValueError for any other text."""
    try:
        topic_id = decode_uuid(text)
    except ValueError as error:
        raise ValueError(f"'{text}' is not an id: {error}") from None
    if encode_uuid(topic_id) != text:  # base64 has more than one text for the same bytes
        raise ValueError(f"'{text}' is not an id of 22 characters in base64")
    return topic_id
