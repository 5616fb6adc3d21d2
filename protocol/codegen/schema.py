# SPDX-License-Identifier: Apache-2.0
"""The model of a message schema, as far as the hot messages need it.

None of these has tagged fields or nested single structs: such a schema is refused rather than half
understood.
"""

import json
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

SCHEMAS: Final = "kafka.protocol.schemas.resources"
SCALARS: Final = frozenset({"bool", "int8", "int16", "int32", "int64", "uuid", "string", "bytes"})

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions from `min` to `max`, both included; empty if max is below min."""

    min: int
    max: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.min <= version <= self.max

    @classmethod
    def parse(cls, text: str | None) -> "Versions":
        """Read Kafka's notation: "none", "3", "0-7" or "3+"."""
        if text is None or text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), 1 << 15)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))


@dataclass(frozen=True, slots=True)
class Field:
    """One field: `type` is the name of a scalar or a struct, that of the items if `is_array`."""

    name: str
    type: str
    is_array: bool
    versions: Versions
    nullable: Versions
    default: str | None
    fields: tuple["Field", ...]

    @property
    def is_struct_array(self) -> bool:
        return self.is_array and bool(self.fields)

    @property
    def item_variable_name(self) -> str:
        """The name of one item of an array in the generated code."""
        return self.name.removesuffix("es") if self.name.endswith("xes") else self.name.removesuffix("s")


@dataclass(frozen=True, slots=True)
class Message:
    """The schema of one request or response."""

    name: str
    api_key: int
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]


def snake_case(name: str) -> str:
    """Return kafka-python's name for a schema's field name."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class UnsupportedSchema(ValueError):
    """A schema with something for which the generator has no code, because no message of ours has it."""


def load(name: str) -> Message:
    """Read the schema of a message, for example "HeartbeatRequest"."""
    text = files(SCHEMAS).joinpath(f"{name}.json").read_text()
    raw: Json = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    return Message(
        name=raw["name"],
        api_key=raw["apiKey"],
        versions=Versions.parse(raw["validVersions"]),
        flexible=Versions.parse(raw["flexibleVersions"]),
        fields=tuple(_field(field) for field in raw["fields"]),
    )


def _field(raw: Json) -> Field:
    type_name: str = raw["type"]
    is_array = type_name.startswith("[]")
    type_name = type_name.removeprefix("[]")
    fields = tuple(_field(inner) for inner in raw.get("fields", ()))
    if "tag" in raw or "flexibleVersions" in raw:
        raise UnsupportedSchema(f"{raw['name']}: tagged fields")
    if fields and not is_array:
        raise UnsupportedSchema(f"{raw['name']}: a nested struct")
    if not fields and (type_name not in SCALARS or (is_array and type_name != "int32")):
        raise UnsupportedSchema(f"{raw['name']}: type {raw['type']}")
    return Field(
        name=snake_case(raw["name"]),
        type=type_name,
        is_array=is_array,
        versions=Versions.parse(raw["versions"]),
        nullable=Versions.parse(raw.get("nullableVersions")),
        default=raw.get("default"),
        fields=fields,
    )
