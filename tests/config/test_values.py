# SPDX-License-Identifier: Apache-2.0
"""One value: what is accepted, what it becomes, and what is refused."""

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from coordinator.config.settings import Settings
from coordinator.config.values import Address, setting_kind

Percent = Annotated[int, Meta(ge=0, le=100)]
Ratio = Annotated[float, Meta(ge=0, le=1)]


@pytest.mark.parametrize(
    ("annotation", "written", "value"),
    [
        (Percent, 7, 7),
        (Percent, "7", 7),
        (Percent, "+1_00", 100),
        (Ratio, "0.25", 0.25),
        (Ratio, 1, 1.0),
        (bool, "True", True),
        (bool, False, False),
        (Literal["a", "b"], "b", "b"),
        (Literal[3, 4], "4", 4),
        (Literal[3, 4], 3, 3),
        (Path, "some where", Path("some where")),
        (str, "R3JvdXBrZWVwZXJUZXN0cw", "R3JvdXBrZWVwZXJUZXN0cw"),
        (Annotated[str | None, "a sentence"], "", None),
        (Address | None, "h:1", Address("h", 1)),
        (Address, "0.0.0.0:9092", Address("0.0.0.0", 9092)),
        (Address, "[::1]:0", Address("::1", 0)),
        (Address, ":9092", Address("", 9092)),
    ],
)
def test_a_value_is_read_from_toml_and_from_text(annotation: Any, written: object, value: object) -> None:
    read = setting_kind(annotation).read(written)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("annotation", "written"),
    [
        (Percent, -1),
        (Percent, 101),
        (Percent, True),
        (Percent, 5.0),
        (Percent, "5.0"),
        (Percent, ""),
        (Percent, "٣"),
        (Percent, [1]),
        (Ratio, "nan"),
        (Ratio, "inf"),
        (Ratio, 1.01),
        (bool, "yes"),
        (bool, 1),
        (Literal["a", "b"], "c"),
        (Literal[3, 4], True),
        (Path, ""),
        (Path, "a\0b"),
        (str, "white space"),
        (str, ""),
        (Address, "localhost"),
        (Address, "localhost:"),
        (Address, "localhost:65536"),
        (Address, "localhost:-1"),
        (Address, "::1:9092"),
        (Address, "a b:1"),
        (Address, "http://a:1"),
        (Address, 9092),
    ],
)
def test_what_does_not_fit_is_refused(annotation: Any, written: object) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        setting_kind(annotation).read(written)


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (Percent, "a whole number from 0 to 100"),
        (Ratio, "a number from 0 to 1"),
        (bool, "true or false"),
        (Literal["always", "interval", "os"], "always, interval or os"),
        (Address, "HOST:PORT with a port from 0 to 65535"),
        (Address | None, "HOST:PORT with a port from 0 to 65535, or nothing"),
    ],
)
def test_what_is_expected_is_said_in_words(annotation: Any, words: str) -> None:
    assert setting_kind(annotation).expected == words


@given(host=st.from_regex(r"[a-z0-9.-]{1,30}|[0-9a-f:]{2,30}", fullmatch=True), port=st.integers(0, 65_535))
def test_an_address_survives_being_written_and_read(host: str, port: int) -> None:
    address = Address(host, port)
    assert Address.parse(str(address)) == address


@pytest.mark.parametrize(
    ("host", "wildcard"), [("", True), ("0.0.0.0", True), ("::", True), ("127.0.0.1", False)]
)
def test_addresses_that_mean_every_interface_are_known(host: str, wildcard: bool) -> None:
    assert Address(host, 9092).is_wildcard is wildcard


def test_clients_are_told_the_listener_unless_another_address_is_advertised() -> None:
    assert Settings(listen=Address("10.0.0.1", 0)).get_advertised_address(4711) == Address("10.0.0.1", 4711)
    assert Settings(advertise=Address("kafka.example", 0)).get_advertised_address(4711) == Address(
        "kafka.example", 4711
    )
    assert Settings(advertise=Address("kafka.example", 29092)).get_advertised_address(4711) == Address(
        "kafka.example", 29092
    )
