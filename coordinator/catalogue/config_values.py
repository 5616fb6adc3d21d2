# SPDX-License-Identifier: Apache-2.0
"""The kinds of values that Kafka's settings take: each parses a text within Kafka's bounds (ConfigDef)."""

import enum
import re
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1

# A list is the only value that could be of any length, and all of it is kept in memory and on disk.
LIST_LENGTH_MAX: Final = 32_767

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_REPLICA: Final = re.compile(r"[0-9]+:[0-9]+")


class ConfigType(enum.IntEnum):
    """The type of a value in DescribeConfigs v3+ (DescribeConfigsResponse.ConfigType)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(enum.IntEnum):
    """The source of a value in DescribeConfigs v1+ (DescribeConfigsResponse.ConfigSource)."""

    TOPIC = 1
    STATIC_BROKER = 4
    DEFAULT = 5


class ConfigKind(msgspec.Struct, frozen=True):
    """The type of a setting's value, and its parser.

    `canonical(text)` returns the value as DescribeConfigs shows it, or raises ValueError with the reason why the text
    is not valid.
    """

    type: ConfigType
    canonical: Callable[[str], str]


def boolean_kind() -> ConfigKind:
    """Return the kind of true or false, in any case."""

    def canonical(text: str) -> str:
        value = text.strip().lower()
        if value not in ("true", "false"):
            raise ValueError("Expected value to be either true or false")
        return value

    return ConfigKind(ConfigType.BOOLEAN, canonical)


def integer_kind(low: int = 0, high: int = INT_MAX) -> ConfigKind:
    """Return the kind of an INT from `low` to `high`."""
    return _whole(ConfigType.INT, INT_MAX, low, high)


def long_kind(low: int = 0, high: int = LONG_MAX) -> ConfigKind:
    """Return the kind of a LONG from `low` to `high`."""
    return _whole(ConfigType.LONG, LONG_MAX, low, high)


def compression_level_kind(low: int, high: int, default: int) -> ConfigKind:
    """Return the kind of a compression level: `low` to `high`, or the number of the codec's default."""
    number = integer_kind(-INT_MAX - 1)

    def canonical(text: str) -> str:
        value = int(number.canonical(text))
        if not low <= value <= high and value != default:
            raise ValueError(f"Value must be between {low} and {high} or equal to {default}")
        return str(value)

    return ConfigKind(ConfigType.INT, canonical)


def ratio_kind() -> ConfigKind:
    """Return the kind of a DOUBLE from 0 to 1."""

    def canonical(text: str) -> str:
        if not _DECIMAL.fullmatch(text.strip()):
            raise ValueError("Not a number of type DOUBLE")
        value = float(text)
        _check_bounds(value, 0, 1)
        return str(value)

    return ConfigKind(ConfigType.DOUBLE, canonical)


def choice_kind(*choices: str) -> ConfigKind:
    """Return the kind of a value that is one of these words."""

    def canonical(text: str) -> str:
        return _chosen(text.strip(), choices)

    return ConfigKind(ConfigType.STRING, canonical)


def text_kind(length_max: int) -> ConfigKind:
    """Return the kind of any text of at most `length_max` characters."""

    def canonical(value: str) -> str:
        if len(value) > length_max:
            raise ValueError(f"A text may have {length_max} characters")
        return value

    return ConfigKind(ConfigType.STRING, canonical)


def list_kind(*choices: str) -> ConfigKind:
    """Return the kind of a list of some of these words with commas between them, or none."""

    def canonical(text: str) -> str:
        return ",".join(_chosen(item, choices) for item in _items(text))

    return ConfigKind(ConfigType.LIST, canonical)


def throttled_replicas_kind() -> ConfigKind:
    """Return the kind of `partition:broker` pairs with commas, `*`, or nothing (ThrottledReplicaListValidator)."""

    def canonical(text: str) -> str:
        items = _items(text)
        if items != ["*"] and not all(_REPLICA.fullmatch(item) for item in items):
            raise ValueError("Expected '*' or a list of [partitionId]:[brokerId] with commas between them")
        return ",".join(items)

    return ConfigKind(ConfigType.LIST, canonical)


def _whole(type_: ConfigType, largest: int, low: int, high: int) -> ConfigKind:
    def canonical(text: str) -> str:
        # the length is checked first: int() of a text of many megabytes would take its time
        if not _INTEGER.fullmatch(text.strip()) or len(text) > 64 or not -largest - 1 <= int(text) <= largest:
            raise ValueError(f"Not a number of type {type_.name}")
        value = int(text)
        _check_bounds(value, low, high)
        return str(value)

    return ConfigKind(type_, canonical)


def _check_bounds(value: float, low: int, high: int) -> None:
    if value < low:
        raise ValueError(f"Value must be at least {low}")
    if value > high:
        raise ValueError(f"Value must be no more than {high}")


def _items(text: str) -> list[str]:
    if len(text) > LIST_LENGTH_MAX:
        raise ValueError(f"A list may have {LIST_LENGTH_MAX} characters")
    if not text.strip():
        return []
    items = [item.strip() for item in text.split(",")]
    if "" in items:
        raise ValueError("Values of a list must not be empty")
    return items


def _chosen(word: str, choices: Sequence[str]) -> str:
    if word not in choices:
        raise ValueError(f"String must be one of: {', '.join(choices)}")
    return word
