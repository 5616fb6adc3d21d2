# SPDX-License-Identifier: Apache-2.0
"""When a certificate expires, as openssl tells it, and what is no certificate."""

import ssl
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from coordinator.gateway.certificate import BEGIN, END, find_expiry_s
from coordinator.gateway.gateway import ConnectionCounts
from coordinator.gateway.metrics import GatewayCollector
from coordinator.host_resources import real_machine
from coordinator.workers.gateway_process import read_certificate_expiry_s

# Made by `openssl req -x509 -newkey ed25519 -nodes -subj /CN=x -days 3650`; it expires in a year with two digits.
KEPT = """-----BEGIN CERTIFICATE-----
MIIBLDCB36ADAgECAhR4B9XNJpHtniKOBsEuQvio+f4CdTAFBgMrZXAwDDEKMAgG
A1UEAwwBeDAeFw0yNjExMzAwOTQxMzZaFw0zNjExMjcwOTQxMzZaMAwxCjAIBgNV
BAMMAXgwKjAFBgMrZXADIQCLW4fhXBOFQC05kcAHWR6TIfXGpHJ9x+diZm+0qS1o
9qNTMFEwHQYDVR0OBBYEFC2y2IhAdBfFD1sIUW3JRPiL9Zq3MB8GA1UdIwQYMBaA
FC2y2IhAdBfFD1sIUW3JRPiL9Zq3MA8GA1UdEwEB/wQFMAMBAf8wBQYDK2VwA0EA
vF+J9S+WAhTlfjwJfSgvEfMmh0uv354fpOPppS+2zcTJp718Ikw2x2bmKljLa7MP
GY+td0uX0DYd0QW5ENplCw==
-----END CERTIFICATE-----
"""
KEPT_EXPIRES = datetime(2036, 11, 27, 9, 41, 36, tzinfo=UTC)


@pytest.mark.process
@pytest.mark.parametrize("key", [("rsa:2048",), ("ec", "-pkeyopt", "ec_paramgen_curve:P-256"), ("ed25519",)])
@pytest.mark.parametrize("days", [1, 20_000], ids=["soon", "after 2050"])
def test_it_is_what_openssl_says(tmp_path: Path, key: tuple[str, ...], days: int) -> None:
    file = tmp_path / "certificate.pem"
    names = ("-subj", "/O=Somebody\N{LATIN SMALL LETTER E WITH ACUTE}/CN=kafka.example", "-utf8")
    openssl("req", "-x509", "-newkey", *key, "-nodes", *names, "-days", str(days), "-out", str(file))
    shown = openssl("x509", "-in", str(file), "-noout", "-enddate")
    assert find_expiry_s(file.read_bytes()) == ssl.cert_time_to_seconds(shown.strip().partition("=")[2])


def openssl(*arguments: str) -> str:
    if arguments[0] == "req":
        arguments = (*arguments, "-keyout", "/dev/null")
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def test_it_is_the_first_certificate_of_a_file_that_may_begin_with_a_key() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nbm90IGEga2V5\n-----END PRIVATE KEY-----\n"
    chain = f"{key}{KEPT}{BEGIN}\nbm9uZQ==\n{END}\n"
    assert find_expiry_s(chain.encode()) == KEPT_EXPIRES.timestamp()


@pytest.mark.parametrize("text", ["", BEGIN, f"{END}{BEGIN}", f"{BEGIN}\nbm9uZQ==\n{END}"])
def test_what_is_no_certificate_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ValueError, match="certificate"):
        find_expiry_s(text.encode())


@given(st.data())
def test_a_damaged_certificate_is_an_error_or_has_another_date(data: st.DataObject) -> None:
    der = bytearray(ssl.PEM_cert_to_DER_cert(KEPT))
    at = data.draw(st.integers(0, len(der) - 1))
    if data.draw(st.booleans()):
        del der[at:]
    else:
        der[at] = data.draw(st.integers(0, 255))
    try:
        found = find_expiry_s(ssl.DER_cert_to_PEM_cert(bytes(der)).encode())
    except ValueError:
        return
    assert isinstance(found, int)


def test_a_file_without_a_certificate_stops_no_gateway(tmp_path: Path) -> None:
    """What can be used and what can be read are two programs' decisions."""
    file = tmp_path / "certificate.pem"
    assert read_certificate_expiry_s(real_machine(), None) is None
    assert read_certificate_expiry_s(real_machine(), file) is None
    file.write_text("nothing")
    assert read_certificate_expiry_s(real_machine(), file) is None
    file.write_text(KEPT)
    assert read_certificate_expiry_s(real_machine(), file) == KEPT_EXPIRES.timestamp()


@pytest.mark.parametrize(
    ("expires_s", "line"), [(None, ""), (1_795_000_000, "expiry_timestamp_seconds 1.795e+09")]
)
def test_the_metric_is_there_with_a_certificate_only(expires_s: int | None, line: str) -> None:
    registry = CollectorRegistry()
    registry.register(GatewayCollector(lambda: ConnectionCounts(0, 0, 0, 0, {}), None, expires_s))
    page = generate_latest(registry).decode()
    assert ("certificate" in page) == bool(line)
    assert line in page
