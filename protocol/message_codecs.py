# SPDX-License-Identifier: Apache-2.0
"""The codec of every API and version: the hot ones from `protocol.hot`, the rest from kafka-python."""

from typing import Any

from protocol import hot
from protocol.codec import ApiSchema, Codec


def schema_for(api_key: int) -> ApiSchema[Any, Any]:
    """Return the schema of an API; raises KeyError if it has none here.

    The first use of an API that is not hot imports kafka-python.
    """
    schema = hot.SCHEMAS.get(api_key)
    if schema is None:
        from protocol import kafka_python_messages

        schema = kafka_python_messages.schema(api_key)
    return schema


def find_message_codec(api_key: int, version: int) -> Codec[Any, Any]:
    """Return the codec of an API and version; raises KeyError if its schema has no such version.

    The first use of an API that is not hot imports kafka-python.
    """
    return schema_for(api_key).codecs[version]
