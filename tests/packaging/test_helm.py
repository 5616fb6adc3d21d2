# SPDX-License-Identifier: Apache-2.0
"""The chart: Helm renders it, Kubernetes' schemas take what comes of it, and by default it is the plain manifest."""

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml

from bench.installed import ROOT
from coordinator.config import load
from coordinator.version import __version__
from tests.support.missing import skip_or_fail
from tests.support.pages import commands

pytestmark = pytest.mark.process  # helm

CHART: Final = ROOT / "deploy" / "helm" / "groupkeeper"
MANIFEST: Final = ROOT / "deploy" / "kubernetes" / "groupkeeper.yaml"
RULES: Final = ROOT / "deploy" / "prometheus.rules.yml"
VERSIONS: Final = ("1.29", "1.31", "1.33")
OURS: Final = frozenset(
    {
        "app.kubernetes.io/instance",
        "app.kubernetes.io/version",
        "app.kubernetes.io/managed-by",
        "helm.sh/chart",
    }
)
"""Labels that only the chart has."""

Objects = dict[str, dict[str, Any]]


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    binary = shutil.which("helm")
    if binary is None:
        skip_or_fail("helm is not installed (go install helm.sh/helm/v3/cmd/helm@v3.13.3)")
    return subprocess.run([binary, *arguments], capture_output=True, text=True, check=False)


LARGE: Final = ("--set-json", 'settings={"max.offsets": 20000000}')
"""A number as a file of values gives it."""


def render(*flags: str, name: str = "groupkeeper", version: str = VERSIONS[-1]) -> Objects:
    """What the chart comes to, by kind."""
    done = helm("template", name, str(CHART), "--kube-version", f"{version}.0", *flags)
    assert done.returncode == 0, done.stderr
    return {each["kind"]: each for each in yaml.safe_load_all(done.stdout) if each}


def set_flags(values: Mapping[str, str]) -> list[str]:
    return [flag for name, value in values.items() for flag in ("--set", f"{name}={value}")]


EVERYTHING: Final = {
    "workers": "3",
    "advertise": "kafka.example.org:9092",
    r"settings.offsets\.retention\.minutes": "43200",
    r"settings.log\.cleaner\.enable": "false",
    r"settings.min\.cleanable\.dirty\.ratio": "0.25",
    "image.repository": "registry.example.org/groupkeeper",
    "imagePullSecrets[0].name": "registry",
    "service.type": "LoadBalancer",
    "service.annotations.a": "b",
    "persistence.storageClass": "fast",
    "podAnnotations.c": "d",
    "nodeSelector.disk": "ssd",
    "tolerations[0].operator": "Exists",
    "podDisruptionBudget.maxUnavailable": "0",
    "networkPolicy.clients[0].ipBlock.cidr": "10.0.0.0/8",
}


def test_helm_finds_nothing_wrong() -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_the_api_takes_what_is_rendered(values: Mapping[str, str], version: str) -> None:
    objects = render(*set_flags(values), name="some", version=version)
    assert len(objects) == 5
    for document in objects.values():
        kubernetes_validate.validate(document, version, strict=True)


def without_ours(value: Any) -> Any:
    """The value without what a chart adds to a plain manifest."""
    if isinstance(value, list):
        return [without_ours(each) for each in value]
    if not isinstance(value, dict):
        return value
    left = {key: without_ours(each) for key, each in value.items() if key not in OURS}
    for key in ("helm.sh/resource-policy", "imagePullPolicy"):
        left.pop(key, None)
    return {key: each for key, each in left.items() if (key, each) != ("annotations", {})}


def test_by_default_it_is_the_plain_manifest() -> None:
    plain = {each["kind"]: each for each in yaml.safe_load_all(MANIFEST.read_text())}
    plain["PodDisruptionBudget"]["metadata"]["labels"] = plain["Service"]["metadata"]["labels"]
    plain["NetworkPolicy"]["metadata"]["labels"] = plain["Service"]["metadata"]["labels"]
    assert without_ours(render()) == plain


def test_the_page_installs_the_chart() -> None:
    """The command of docs/installing.md; without a cluster what it would install is only shown."""
    page = (ROOT / "docs" / "installing.md").read_text()
    (command,) = (shlex.split(each) for each in commands(page) if each.startswith("helm "))
    _, verb, release, chart, *flags = command
    assert (verb, release, ROOT / chart) == ("install", "groupkeeper", CHART)
    (container,) = render(*flags)["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    assert container["image"].startswith("REGISTRY/groupkeeper:")


def test_selectors_choose_the_pod_of_this_release_alone() -> None:
    objects = render(name="first")
    labels = objects["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/instance"] == "first"
    for chosen in (
        objects["Service"]["spec"]["selector"],
        objects["StatefulSet"]["spec"]["selector"]["matchLabels"],
        objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ):
        assert chosen == labels


def test_the_node_takes_the_settings_of_the_pod() -> None:
    (container,) = render(*LARGE, *set_flags(EVERYTHING))["StatefulSet"]["spec"]["template"]["spec"][
        "containers"
    ]
    settings = load(None, {each["name"]: each["value"] for each in container["env"]}, (), {})
    assert settings.workers == 3
    assert str(settings.advertise) == "kafka.example.org:9092"
    assert settings.offsets_retention_minutes == 43_200
    assert settings.max_offsets == 20_000_000
    assert settings.log_cleaner_enable is False
    assert settings.min_cleanable_dirty_ratio == 0.25
    assert container["image"] == f"registry.example.org/groupkeeper:{__version__}"


def test_each_worker_has_its_ports_everywhere() -> None:
    objects = render(*set_flags({"workers": "2", "serviceMonitor.enabled": "true"}))
    expected = {"kafka": 9092, "kafka-2": 9093, "metrics": 9308, "metrics-2": 9309}
    (container,) = objects["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    assert {port["name"]: port["containerPort"] for port in container["ports"]} == expected
    ports = objects["Service"]["spec"]["ports"]
    assert {port["name"]: port["port"] for port in ports} == expected
    assert all(port["targetPort"] == port["name"] for port in ports)
    allowed = [port["port"] for rule in objects["NetworkPolicy"]["spec"]["ingress"] for port in rule["ports"]]
    assert sorted(allowed) == sorted(expected)
    scraped = [endpoint["port"] for endpoint in objects["ServiceMonitor"]["spec"]["endpoints"]]
    assert scraped == ["metrics", "metrics-2"]


def test_the_alerting_rules_come_along_where_they_are_wanted() -> None:
    assert "PrometheusRule" not in render()
    rule = render(*set_flags({"prometheusRule.enabled": "true", "prometheusRule.labels.release": "main"}))
    assert rule["PrometheusRule"]["spec"] == yaml.safe_load(RULES.read_text())
    assert rule["PrometheusRule"]["metadata"]["labels"]["release"] == "main"


def test_a_gateway_is_refused_since_the_chart_has_no_ports_for_it() -> None:
    flag = r"settings.upstream\.bootstrap\.servers=kafka:9092"
    done = helm("template", "some", str(CHART), "--kube-version", "1.31.0", "--set", flag)
    assert done.returncode != 0
    assert "this chart has no ports for a gateway" in done.stderr


def test_a_claim_outlives_its_release_and_can_be_one_that_is_there() -> None:
    claim = render()["PersistentVolumeClaim"]
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    objects = render(*set_flags({"persistence.existingClaim": "mine"}))
    assert "PersistentVolumeClaim" not in objects
    volumes = objects["StatefulSet"]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "mine"}} in volumes


@pytest.mark.parametrize(
    "flag", ["worker=2", "workers=0", "advertise=http://kafka", "settings.Listen=x", "image.repository="]
)
def test_a_mistake_in_the_values_is_found(flag: str) -> None:
    done = helm("template", "some", str(CHART), "--kube-version", "1.31.0", "--set", flag)
    assert done.returncode != 0
    assert "values don't meet the specifications" in done.stderr


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
