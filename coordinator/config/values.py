# SPDX-License-Identifier: Apache-2.0
"""The kinds of settings: which values each accepts, in words, and how they are read from text or TOML."""

import re
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import Annotated, Final, Literal, NamedTuple, NewType, get_args, get_origin

import msgspec

_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]+(_[0-9]+)*")
TEXT_CHARS_MAX: Final = 1_000

Host = NewType("Host", str)
"""The name or address of a machine, without a port; an IPv6 address without brackets."""
Text = NewType("Text", str)
"""Any text that can be printed, such as the name of a user."""


class ConfigError(ValueError):
    """The settings cannot be used; the message is one line that says which, where and why."""


class Address(NamedTuple):
    """The address at which a socket listens or is reached; port 0 lets the system choose one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_wildcard(self) -> bool:
        """True if the host stands for every interface of a machine; clients cannot connect to such a host."""
        return self.host in ("", "0.0.0.0", "::")  # noqa: S104 - recognised here, not bound to

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read HOST:PORT, [IPV6]:PORT or :PORT (every interface). Raises ValueError for anything else."""
        host, colon, port = text.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ValueError("an IPv6 address needs brackets")
        if not colon or not port.isascii() or not port.isdigit() or int(port) > 65_535:
            raise ValueError("no port")
        if any(c.isspace() or c in "/[]" for c in host):
            raise ValueError("not a host")
        return cls(host, int(port))


class SettingKind(NamedTuple):
    """The values that a setting accepts: `read` raises ValueError or TypeError, `expected` is a description."""

    read: Callable[[object], object]
    expected: str


def setting_kind(annotation: object) -> SettingKind:
    """Return the kind behind a field's annotation, with the bounds of its msgspec.Meta."""
    low: int | float | None = None
    high: int | float | None = None
    if get_origin(annotation) is Annotated:
        annotation, *extras = get_args(annotation)
        for meta in extras:
            if isinstance(meta, msgspec.Meta):
                low, high = meta.ge, meta.le
    inner = [arg for arg in get_args(annotation) if arg is not NoneType]
    if NoneType in get_args(annotation):
        kind = setting_kind(inner[0])
        return SettingKind(
            lambda value: None if value == "" else kind.read(value), f"{kind.expected}, or nothing"
        )
    if get_origin(annotation) is Literal:
        return _one_of(inner)
    if annotation in (int, float):
        return _number(int if annotation is int else float, low, high)
    if get_origin(annotation) is tuple:
        return SettingKind(_read_addresses, "HOST:PORT,HOST:PORT,... with ports from 1 to 65535")
    simple: dict[object, SettingKind] = {
        bool: SettingKind(_read_bool, "true or false"),
        str: SettingKind(_read_name, "1 to 200 characters out of a-z, A-Z, 0-9, '.', '_' and '-'"),
        Host: SettingKind(_read_host, "a host, without a port"),
        Text: SettingKind(_read_text, f"1 to {TEXT_CHARS_MAX} characters that can be printed"),
        Path: SettingKind(lambda value: Path(_text(value)), "a path"),
        Address: SettingKind(
            lambda value: Address.parse(_text(value)), "HOST:PORT with a port from 0 to 65535"
        ),
    }
    return simple[annotation]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    if not value or "\0" in value:
        raise ValueError(value)
    return value


def _read_name(value: object) -> str:
    text = _text(value)
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,200}", text):
        raise ValueError(text)
    return text


def _read_host(value: object) -> str:
    host = _text(value)
    if any(c.isspace() or c in "/[]," for c in host) or (":" in host and host.count(":") < 2):
        raise ValueError(host)
    return host


def _read_text(value: object) -> str:
    text = _text(value)
    if len(text) > TEXT_CHARS_MAX or not text.isprintable():
        raise ValueError(text)
    return text


def _read_addresses(value: object) -> tuple[Address, ...]:
    """Read a list like Kafka's `bootstrap.servers`, in which a comma at the end is no mistake."""
    addresses = tuple(Address.parse(part.strip()) for part in _text(value).split(",") if part.strip())
    if not addresses or any(not address.host or not address.port for address in addresses):
        raise ValueError(value)
    return addresses


def _read_bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}[_text(value).lower()]


def _one_of(choices: list[object]) -> SettingKind:
    by_text = {str(choice): choice for choice in choices}
    *most, last = by_text

    return SettingKind(lambda value: by_text[str(value)], f"{', '.join(most)} or {last}")


def _number(
    number: type[int] | type[float], low: int | float | None, high: int | float | None
) -> SettingKind:
    assert low is not None, "every number has a bound below"
    assert high is not None, "every number has a bound above"

    def read(value: object) -> object:
        if isinstance(value, str) and (number is float or _WHOLE_NUMBER.fullmatch(value)):
            value = number(value)
        if isinstance(value, bool) or not isinstance(value, int if number is int else (int, float)):
            raise TypeError(value)
        if not low <= value <= high:  # NaN is outside of every range, too
            raise ValueError(value)
        return number(value)

    return SettingKind(read, f"a {'whole ' if number is int else ''}number from {low} to {high}")
