# SPDX-License-Identifier: Apache-2.0
"""Reads from a certificate when it expires (RFC 5280).

Python's ssl module reads this only from the certificate of a peer, and a package that reads certificates would take
12 MB of each process for this one date.
"""

import calendar
import ssl
from datetime import datetime
from typing import Final, NamedTuple

BEGIN: Final = "-----BEGIN CERTIFICATE-----"
END: Final = "-----END CERTIFICATE-----"
SEQUENCE: Final = 0x30
VERSION: Final = 0xA0
UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18


class _Element(NamedTuple):
    """A value of DER: its tag, and the range of its content."""

    tag: int
    start: int
    end: int


def find_expiry_s(pem: bytes) -> int:
    """Return when the first certificate of a PEM file expires, which is the server's own, in Unix seconds.

    Raises ValueError if there is no certificate, or it cannot be read.
    """
    text = pem.decode("ascii", "replace")
    start = text.find(BEGIN)
    end = text.find(END, start)
    if start < 0 or end < 0:
        raise ValueError("there is no certificate in the file")
    der = ssl.PEM_cert_to_DER_cert(text[start : end + len(END)])
    certificate = _read(der, 0, SEQUENCE)
    signed = _read(der, certificate.start, SEQUENCE)
    element = _read(der, signed.start)
    if element.tag == VERSION:
        element = _read(der, element.end)
    signature = _read(der, element.end, SEQUENCE)  # `element` is the serial number
    issuer = _read(der, signature.end, SEQUENCE)
    validity = _read(der, issuer.end, SEQUENCE)
    not_before = _read(der, validity.start)
    not_after = _read(der, not_before.end)
    return _seconds(not_after.tag, der[not_after.start : not_after.end].decode("ascii", "replace"))


def _read(der: bytes, at: int, tag: int | None = None) -> _Element:
    """Return the element that begins at `at`. Raises ValueError if it is cut off, or another one than `tag`."""
    header = der[at : at + 2]
    if len(header) < 2 or (tag is not None and header[0] != tag):
        raise ValueError(f"byte {at} of the certificate is not what RFC 5280 puts there")
    start, length = at + 2, header[1]
    if length & 0x80:  # the length has this many bytes of its own
        start += length & 0x7F
        length = int.from_bytes(der[at + 2 : start], "big")
    if start + length > len(der):
        raise ValueError(f"the certificate ends within the element at byte {at}")
    return _Element(header[0], start, start + length)


def _seconds(tag: int, text: str) -> int:
    """Return the time in Unix seconds; RFC 5280 has years before 2050 in two digits (section 4.1.2.5)."""
    if tag == UTC_TIME:
        text = ("19" if text >= "50" else "20") + text
    elif tag != GENERALIZED_TIME:
        raise ValueError("the end of the certificate's validity is not a time")
    return calendar.timegm(datetime.strptime(text, "%Y%m%d%H%M%SZ").timetuple())
