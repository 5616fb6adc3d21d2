# SPDX-License-Identifier: Apache-2.0
"""The files of deploy/compose as docker compose reads them, several on top of each other."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from bench.installed import ROOT

FOLDER: Final = ROOT / "deploy" / "compose"
Services = dict[str, dict[str, Any]]


def read(name: str) -> dict[str, Any]:
    """One file of the folder."""
    found: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text())
    return found


def merged(names: Iterable[str]) -> dict[str, Any]:
    """Return what the files come to together, each on top of those before it (compose-spec, "Merge and override").

    Of the lists only ports and volumes are merged; a volume replaces the one that has its target.
    """
    first, *others = [read(name) for name in names]
    for other in others:
        first["volumes"] |= other["volumes"]
        for name, added in other["services"].items():
            service = first["services"].setdefault(name, {})
            service |= _with_lists_merged(service, added)
    return first


def _with_lists_merged(service: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(added)
    if "environment" in service:
        found["environment"] = {**service["environment"], **added.get("environment", {})}
    if "ports" in service:
        found["ports"] = [*service["ports"], *added.get("ports", [])]
    if "volumes" in service:
        by_target = {_target(volume): volume for volume in service["volumes"]}
        by_target |= {_target(volume): volume for volume in added.get("volumes", [])}
        found["volumes"] = list(by_target.values())
    return found


def _target(volume: str) -> str:
    return volume.split(":")[1]


def mounts(services: Services, name: str) -> dict[str, Path]:
    """The files and folders of this tree that a service is given, by where it finds them."""
    found = {}
    for volume in services[name]["volumes"]:
        source, target, *options = volume.split(":")
        if source.startswith("."):
            assert options == ["ro"]
            found[target] = (FOLDER / source).resolve()
    return found
