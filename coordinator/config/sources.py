# SPDX-License-Identifier: Apache-2.0
"""The sources of settings, least to most important: defaults, the TOML file, the environment, flags.

Every mistake is a ConfigError with one line that names the setting, the value, where it was written and what
would be right. A mistake counts even if a more important source overrides it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from coordinator.config.cross_checks import check_together
from coordinator.config.settings import Settings
from coordinator.config.values import ConfigError, SettingKind, setting_kind

ENVIRONMENT_PREFIX: Final = "GROUPKEEPER_"
CONFIG_VARIABLE: Final = "GROUPKEEPER_CONFIG"
"""The variable that names the TOML file, as --config does."""
BOOTSTRAP_VARIABLE: Final = "GROUPKEEPER_BOOTSTRAP"
"""The variable that names the cluster of commands, as their --bootstrap does; it is no setting of a node."""
_NO_SETTINGS: Final = frozenset({CONFIG_VARIABLE, BOOTSTRAP_VARIABLE})

# Kubernetes gives every container variables for all services around, and ours may well be called "groupkeeper" or
# "groupkeeper-metrics": GROUPKEEPER_SERVICE_HOST, GROUPKEEPER_PORT_9092_TCP_ADDR, GROUPKEEPER_PORT=tcp://10.0.0.1:9092.
_FROM_KUBERNETES: Final = re.compile(
    r"\w+_SERVICE_(HOST|PORT(_\w+)?)=.*"
    r"|\w+_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?=.*"
    r"|\w+_PORT=(tcp|udp|sctp)://.*"
)
_TOML_NAME: Final = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_TOML_DOTTED_NAME: Final = re.compile(rf"\s*({_TOML_NAME}(?:\s*\.\s*{_TOML_NAME})*)\s*[=\]]")


class RawSetting(NamedTuple):
    """One value as it was written, and where."""

    key: str
    value: object
    origin: str


class _Field(NamedTuple):
    attribute: str
    kind: SettingKind


def load(
    config: Path | None = None,
    environment: Mapping[str, str] | None = None,
    assignments: Iterable[str] = (),
    flags: Mapping[str, tuple[str, str | None]] | None = None,
) -> Settings:
    """Merge all sources into Settings.

    `assignments` are the KEY=VALUE of --set; `flags` maps a flag to its setting's name and value (None: the
    flag is absent) and wins over --set. Raises ConfigError at the first mistake.
    """
    given = [
        *(read_toml(config) if config is not None else ()),
        *read_environment(environment or {}),
        *map(parse_set_flag, assignments),
        *(RawSetting(key, value, flag) for flag, (key, value) in (flags or {}).items() if value is not None),
    ]
    fields = {f.encode_name: _Field(f.name, setting_kind(f.type)) for f in msgspec.structs.fields(Settings)}
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for item in given:
        field = fields.get(item.key)
        if field is None:
            raise ConfigError(f"unknown setting {item.key} ({item.origin}){_suggest(item.key, fields)}")
        try:
            values[field.attribute] = field.kind.read(item.value)
        except (ValueError, TypeError, KeyError):
            shown = f"bad value for {item.key}: {_shown(item.value)} ({item.origin})"
            raise ConfigError(f"{shown}, expected {field.kind.expected}") from None
        origins[item.key] = item.origin
    settings = Settings(**values)
    check_together(settings, origins)
    return settings


def read_toml(path: Path) -> Iterator[RawSetting]:
    """Yield the settings in a TOML file: names quoted ("a.b" = 1), dotted (a.b = 1) or in tables ([a] b = 1)."""
    import tomllib

    try:
        text = path.read_bytes().decode("utf-8-sig")
        tree = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"cannot read the config file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read the config file {path}: it is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        # a.b = 1 with a.b.c = 2 is no TOML, and Kafka has such names
        hint = '; put names in quotes: "log.flush" = "always"' if "overwrite" in str(error) else ""
        raise ConfigError(f"the config file {path} is not TOML: {error}{hint}") from None
    lines = _toml_lines(text)
    seen: set[str] = set()
    for key, value in _flatten("", tree):
        origin = f"{path}:{lines[key]}" if key in lines else str(path)
        if key in seen:  # "a.b" = 1 and a.b = 2 differ for TOML
            raise ConfigError(f"{key} is set twice ({origin})")
        seen.add(key)
        yield RawSetting(key, value, origin)


def _flatten(prefix: str, table: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(f"{prefix}{name}.", value)
        else:
            yield prefix + name, value


def _toml_lines(text: str) -> dict[str, int]:
    """Return the line number of each key, for messages, in a text that tomllib has accepted."""
    lines: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        header = line.lstrip().startswith("[")
        found = _TOML_DOTTED_NAME.match(line.lstrip().lstrip("[") if header else line)
        if found is None:
            continue
        name = ".".join(part.strip("\"'") for part in re.findall(_TOML_NAME, found[1]))
        if header:
            table = f"{name}."
        else:
            lines[table + name] = number
    return lines


def read_environment(environment: Mapping[str, str]) -> Iterator[RawSetting]:
    """Yield the settings in variables such as GROUPKEEPER_OFFSETS_RETENTION_MINUTES=10080."""
    for variable, value in sorted(environment.items()):
        ours = variable.startswith(ENVIRONMENT_PREFIX) and variable not in _NO_SETTINGS
        if ours and not _FROM_KUBERNETES.fullmatch(f"{variable}={value}"):
            key = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", ".")
            yield RawSetting(key, value, f"environment variable {variable}")


def parse_set_flag(text: str) -> RawSetting:
    """Return the setting in the KEY=VALUE of a --set flag. Raises ConfigError."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {text}: expected KEY=VALUE, such as --set log.flush=os")
    return RawSetting(key.strip(), value.strip(), "--set")


def _suggest(key: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(key.replace("_", ".").lower(), list(known), n=1, cutoff=0.7)
    return f"; did you mean {close[0]}?" if close else "; `groupkeeper settings` lists them all"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"
