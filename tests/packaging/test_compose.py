# SPDX-License-Identifier: Apache-2.0
"""The compose files: compose's own schema takes them, their files are where services look for them, and they fit.

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
from tests.packaging.compose import FOLDER, merged, mounts, read
from tests.packaging.image import stages
from tests.support.missing import skip_or_fail
from tests.support.pages import commands

NODE_FILES: Final[tuple[str, ...]] = ("compose.yaml",)
GATEWAY_FILES: Final[tuple[str, ...]] = ("compose.yaml", "gateway.yaml")
BY_FILES: Final = {files: merged(files) for files in (NODE_FILES, GATEWAY_FILES)}
SCHEMA: Final = json.loads((Path(__file__).parent / "compose-spec.json").read_text())
IMAGE: Final = stages(ROOT / "Dockerfile")["server"]

of_both = pytest.mark.parametrize("files", BY_FILES, ids=["node", "gateway"])


@pytest.mark.parametrize("name", GATEWAY_FILES)
def test_the_schema_takes_the_file(name: str) -> None:
    jsonschema.validate(read(name), SCHEMA, jsonschema.Draft201909Validator)


def test_the_page_starts_the_files() -> None:
    """They are the files that the schema takes, and what they demand is given."""
    page = (ROOT / "docs" / "installing.md").read_text()
    demanded = set(re.findall(r"\$\{(\w+):\?", (FOLDER / "compose.yaml").read_text()))
    started = []
    for variable, *words in (each.split() for each in commands(page) if "docker compose" in each):
        assert (words[:2], words[-1]) == (["docker", "compose"], "up")
        assert set(words[2:-1:2]) == {"--file"}
        started.append(tuple((ROOT / file).relative_to(FOLDER).name for file in words[3:-1:2]))
        assert demanded == {variable.partition("=")[0]}
    assert started == [NODE_FILES, GATEWAY_FILES]


@pytest.mark.process
@of_both
def test_compose_reads_what_we_take_the_files_for(files: tuple[str, ...]) -> None:
    """Its own merge of the files gives the environments, ports and volumes that these tests look at."""
    command = shutil.which("docker-compose")
    if command is None:
        skip_or_fail("docker-compose is not installed (go build ./cmd in github.com/docker/compose/v2)")
    flags = [flag for name in files for flag in ("--file", str(FOLDER / name))]
    done = subprocess.run(
        [command, *flags, "config", "--no-interpolate", "--format=json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    services = json.loads(done.stdout)["services"]
    ours = BY_FILES[files]["services"]
    assert services.keys() == ours.keys()
    for name, service in services.items():
        given = {key: str(value) for key, value in ours[name].get("environment", {}).items()}
        assert environment_of(service) == given
        ports = [
            f"{port['host_ip']}:{port['published']}:{port['target']}" for port in service.get("ports", [])
        ]
        assert sorted(ports) == sorted(ours[name].get("ports", []))
        targets = [volume["target"] for volume in service["volumes"]]
        assert sorted(targets) == sorted(volume.split(":")[1] for volume in ours[name]["volumes"])


def environment_of(service: dict[str, Any]) -> dict[str, str]:
    """Without interpolation, compose prints what it has merged as NAME=VALUE."""
    found = service.get("environment", {})
    pairs = (each.split("=", 1) for each in found) if isinstance(found, list) else found.items()
    return {name: str(value) for name, value in pairs}


def test_a_file_with_a_wrong_name_is_found() -> None:
    file = read("compose.yaml")
    file["services"]["groupkeeper"]["stop_grace"] = "60s"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(file, SCHEMA, jsonschema.Draft201909Validator)


@of_both
def test_only_this_host_reaches_the_ports(files: tuple[str, ...]) -> None:
    ports = [port for each in BY_FILES[files]["services"].values() for port in each.get("ports", [])]
    assert len(ports) == len(set(ports))
    assert all(port.startswith("127.0.0.1:") for port in ports)


@of_both
def test_the_node_fits_its_image(files: tuple[str, ...]) -> None:
    node = BY_FILES[files]["services"]["groupkeeper"]
    assert (FOLDER / node["build"]).resolve() == ROOT
    assert set(IMAGE.values("EXPOSE")[0].split()) <= {port.rpartition(":")[2] for port in node["ports"]}
    (volume,) = node["volumes"]
    source, target = volume.split(":")
    assert [target] == IMAGE.values("VOLUME")
    assert source in BY_FILES[files]["volumes"]
    assert int(node["stop_grace_period"].removesuffix("s")) > Settings().shutdown_timeout_ms / 1000


def test_a_node_by_itself_and_a_gateway_have_volumes_of_their_own() -> None:
    """Neither starts with the data of the other (docs/gateway.md#topics)."""
    volumes = [each["services"]["groupkeeper"]["volumes"] for each in BY_FILES.values()]
    assert volumes == [["data:/data"], ["gateway:/data"]]


def test_no_client_reaches_the_broker_past_the_gateway() -> None:
    assert "ports" not in BY_FILES[GATEWAY_FILES]["services"]["kafka"]


@of_both
def test_what_is_mounted_is_there_and_volumes_are_declared(files: tuple[str, ...]) -> None:
    services: dict[str, dict[str, Any]] = BY_FILES[files]["services"]
    for name, service in services.items():
        assert all(path.exists() for path in mounts(services, name).values())
        named = {volume.split(":")[0] for volume in service["volumes"] if not volume.startswith(".")}
        assert named <= BY_FILES[files]["volumes"].keys()


@pytest.mark.process
@of_both
def test_prometheus_takes_its_configuration_as_it_is_mounted(tmp_path: Path, files: tuple[str, ...]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        skip_or_fail("promtool is not installed")
    services = BY_FILES[files]["services"]
    for target, source in mounts(services, "prometheus").items():
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
    (targets,) = (group["targets"] for group in job["static_configs"])
    first = int(IMAGE.environment()["GROUPKEEPER_METRICS_LISTEN"].rpartition(":")[2])
    processes = 2 if files == GATEWAY_FILES else 1
    assert targets == [f"groupkeeper:{first + index}" for index in range(processes)]


def test_grafana_finds_prometheus_and_the_dashboard() -> None:
    services = BY_FILES[NODE_FILES]["services"]
    given = mounts(services, "grafana")
    provisioning = "/etc/grafana/provisioning"
    (source,) = yaml.safe_load(given[f"{provisioning}/datasources/groupkeeper.yml"].read_text())[
        "datasources"
    ]
    assert source["url"] == f"http://prometheus:{services['prometheus']['ports'][0].rpartition(':')[2]}"
    (provider,) = yaml.safe_load(given[f"{provisioning}/dashboards/groupkeeper.yml"].read_text())["providers"]
    dashboards = given[provider["options"]["path"]]
    assert [json.loads(path.read_text())["title"] for path in dashboards.glob("*.json")] == ["Groupkeeper"]


def test_grafana_has_no_password_that_everybody_knows() -> None:
    services = BY_FILES[NODE_FILES]["services"]
    password = services["grafana"]["environment"]["GF_SECURITY_ADMIN_PASSWORD"]
    assert re.fullmatch(r"\$\{GRAFANA_PASSWORD:\?.+\}", password), "the start must fail where none is set"
