# SPDX-License-Identifier: Apache-2.0
"""The codec of every served API and version: the hot ones from `protocol.hot`, the rest from kafka-python."""

from functools import partial
from typing import Final

from protocol import hot
from protocol.apis import FIRST_FLEXIBLE, SUPPORTED, ApiKey
from protocol.codec import Codec

__all__ = ["Codec", "codec_for"]

_CODECS: Final[dict[tuple[int, int], Codec]] = {
    (api_key, version): codec
    for api_key, versions in hot.CODECS.items()
    for version, codec in versions.items()
}


def codec_for(api_key: int, version: int) -> Codec:
    """Return the codec of a served API and version; raises KeyError for any other.

    The first use of an API that is not hot imports kafka-python.
    """
    codec = _CODECS.get((api_key, version))
    if codec is None:
        codec = _CODECS[api_key, version] = _from_messages(api_key, version)
    return codec


def _from_messages(api_key: int, version: int) -> Codec:
    if api_key not in SUPPORTED:
        raise KeyError((api_key, version))
    key = ApiKey(api_key)
    if not SUPPORTED[key].min <= version <= SUPPORTED[key].max:
        raise KeyError((api_key, version))
    from protocol import messages

    return Codec(
        partial(messages.decode_request, key, version),
        partial(messages.encode_response_body, key, version),
        partial(messages.decode_response, key, version),
        partial(messages.encode_request, key, version),
        version >= FIRST_FLEXIBLE[key],
        partial(messages.decode_request_in_steps, key, version),
    )
