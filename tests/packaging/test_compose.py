# SPDX-License-Identifier: Apache-2.0
"""The compose file: compose's own schema takes it, its files are where its services look for them, and they fit.

`compose-spec.json` is the schema that docker compose checks files by, from github.com/compose-spec/compose-go v2.4.7
(Apache License 2.0).
"""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
import yaml

from bench.installed import ROOT
from coordinator.config import Settings
from tests.packaging.image import stages
from tests.support.missing import skip_or_fail
from tests.support.pages import commands

FOLDER: Final = ROOT / "deploy" / "compose"
FILE: Final[dict[str, Any]] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES: Final = FILE["services"]
SCHEMA: Final = json.loads((Path(__file__).parent / "compose-spec.json").read_text())
IMAGE: Final = stages(ROOT / "Dockerfile")["server"]


def mounts(service: str) -> dict[str, Path]:
    """The files and folders of this tree that a service is given, by where it finds them."""
    found = {}
    for volume in SERVICES[service]["volumes"]:
        source, target, *options = volume.split(":")
        if source.startswith("."):
            assert options == ["ro"]
            found[target] = (FOLDER / source).resolve()
    return found


def test_the_schema_takes_the_file() -> None:
    jsonschema.validate(FILE, SCHEMA, jsonschema.Draft201909Validator)


def test_the_page_starts_the_file() -> None:
    """It is the file that the schema takes, and what it demands is given."""
    page = (ROOT / "docs" / "installing.md").read_text()
    (command,) = (each.split() for each in commands(page) if "docker compose" in each)
    variable, *words = command
    assert words[:3] == ["docker", "compose", "--file"]
    assert (ROOT / words[3], words[4:]) == (FOLDER / "compose.yaml", ["up"])
    demanded = set(re.findall(r"\$\{(\w+):\?", (FOLDER / "compose.yaml").read_text()))
    assert demanded == {variable.partition("=")[0]}


def test_a_file_with_a_wrong_name_is_found() -> None:
    wrong = {**FILE, "services": {"groupkeeper": {**SERVICES["groupkeeper"], "stop_grace": "60s"}}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, SCHEMA, jsonschema.Draft201909Validator)


def test_only_this_host_reaches_the_ports() -> None:
    ports = [port for service in SERVICES.values() for port in service["ports"]]
    assert len(ports) == 4
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_node_fits_its_image() -> None:
    node = SERVICES["groupkeeper"]
    assert (FOLDER / node["build"]).resolve() == ROOT
    assert sorted(port.rpartition(":")[2] for port in node["ports"]) == IMAGE.values("EXPOSE")[0].split()
    (volume,) = node["volumes"]
    source, target = volume.split(":")
    assert [target] == IMAGE.values("VOLUME")
    assert source in FILE["volumes"]
    assert int(node["stop_grace_period"].removesuffix("s")) > Settings().shutdown_timeout_ms / 1000


def test_what_is_mounted_is_there_and_volumes_are_declared() -> None:
    for name, service in SERVICES.items():
        assert all(path.exists() for path in mounts(name).values())
        named = {volume.split(":")[0] for volume in service["volumes"] if not volume.startswith(".")}
        assert named <= FILE["volumes"].keys()


@pytest.mark.process
def test_prometheus_takes_its_configuration_as_it_is_mounted(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        skip_or_fail("promtool is not installed")
    for target, source in mounts("prometheus").items():
        place = tmp_path / target.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, place)
    configuration = tmp_path / "etc" / "prometheus" / "prometheus.yml"
    done = subprocess.run(
        [promtool, "check", "config", str(configuration)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 rule files found" in done.stdout
    (job,) = yaml.safe_load(configuration.read_text())["scrape_configs"]
    ((target,),) = (group["targets"] for group in job["static_configs"])
    assert target == f"groupkeeper:{IMAGE.environment()['GROUPKEEPER_METRICS_LISTEN'].rpartition(':')[2]}"


def test_grafana_finds_prometheus_and_the_dashboard() -> None:
    given = mounts("grafana")
    provisioning = "/etc/grafana/provisioning"
    (source,) = yaml.safe_load(given[f"{provisioning}/datasources/groupkeeper.yml"].read_text())[
        "datasources"
    ]
    assert source["url"] == f"http://prometheus:{SERVICES['prometheus']['ports'][0].rpartition(':')[2]}"
    (provider,) = yaml.safe_load(given[f"{provisioning}/dashboards/groupkeeper.yml"].read_text())["providers"]
    dashboards = given[provider["options"]["path"]]
    assert [json.loads(path.read_text())["title"] for path in dashboards.glob("*.json")] == ["Groupkeeper"]


def test_grafana_has_no_password_that_everybody_knows() -> None:
    password = SERVICES["grafana"]["environment"]["GF_SECURITY_ADMIN_PASSWORD"]
    assert re.fullmatch(r"\$\{GRAFANA_PASSWORD:\?.+\}", password), "the start must fail where none is set"
