# SPDX-License-Identifier: Apache-2.0
"""The chart: Helm renders it, Kubernetes' schemas take what comes of it, and by default it is the plain manifest."""

import json
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml

from audit.cli import parser
from bench.installed import ROOT
from coordinator.config import Settings, load
from coordinator.version import __version__
from coordinator.workers.process_settings import gateway_config
from tests.packaging.image import stages
from tests.support.missing import skip_or_fail
from tests.support.pages import commands

pytestmark = pytest.mark.process  # helm

CHART: Final = ROOT / "deploy" / "helm" / "groupkeeper"
MANIFESTS: Final = ROOT / "deploy" / "kubernetes"
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

SETTINGS: Final = frozenset(f"GROUPKEEPER_{name.upper()}" for name in Settings.__struct_fields__)

Objects = dict[str, dict[str, Any]]


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    binary = shutil.which("helm")
    if binary is None:
        skip_or_fail("helm is not installed (go install helm.sh/helm/v3/cmd/helm@v3.13.3)")
    return subprocess.run([binary, *arguments], capture_output=True, text=True, check=False)


LARGE: Final = ("--set-json", 'settings={"max.offsets": 20000000}')
"""A number as a file of values gives it."""


def render(*flags: str, name: str = "groupkeeper", version: str = VERSIONS[-1]) -> Objects:
    """What the chart comes to, by kind; the kinds of further objects stand behind `audit/` and `metrics/`."""
    done = helm("template", name, str(CHART), "--kube-version", f"{version}.0", *flags)
    assert (done.returncode, done.stderr) == (0, "")
    documents = [each for each in yaml.safe_load_all(done.stdout) if each]
    found = {}
    for each in documents:
        kind, last = each["kind"], each["metadata"]["name"].rpartition("-")[2]
        found[f"{last}/{kind}" if last in ("audit", "metrics") else kind] = each
    assert len(found) == len(documents)
    return found


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
    "audit.enabled": "true",
    "audit.image.repository": "registry.example.org/audit",
    "audit.persistence.storageClass": "slow",
    "secrets[0]": "some.secret",
}
GATEWAY: Final = {
    r"settings.upstream\.bootstrap\.servers": "kafka:9092",
    r"settings.gateway\.port\.base": "10000",
    "gateway.brokers": "{0,1,2}",
}
SNI: Final = {
    r"settings.upstream\.bootstrap\.servers": "kafka:9092",
    r"settings.upstream\.security\.protocol": "SASL_SSL",
    r"settings.upstream\.sasl\.mechanism": "SCRAM-SHA-512",
    r"settings.upstream\.sasl\.username": "groupkeeper",
    r"settings.upstream\.sasl\.password\.file": "/etc/groupkeeper/kafka-login/password",
    r"settings.gateway\.ssl\.certificate\.location": "/etc/groupkeeper/gateway-tls/tls.crt",
    r"settings.gateway\.ssl\.key\.location": "/etc/groupkeeper/gateway-tls/tls.key",
    r"settings.gateway\.sni\.pattern": "broker-\\{id\\}.kafka.example",
    r"settings.gateway\.sni\.port": "9095",
    r"settings.gateway\.workers": "2",
    "secrets": "{kafka-login,gateway-tls}",
    "workers": "2",
}


def test_helm_finds_nothing_wrong() -> None:
    """Not even something to recommend, nor a file to warn of."""
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[" not in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("values", "count"),
    [({}, 5), (EVERYTHING, 8), (GATEWAY, 5), (SNI, 5)],
    ids=["defaults", "everything", "gateway", "sni"],
)
def test_the_api_takes_what_is_rendered(values: Mapping[str, str], count: int, version: str) -> None:
    objects = render(*set_flags(values), name="some", version=version)
    assert len(objects) == count
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


def plain(name: str) -> Objects:
    """The manifest with the labels that the chart gives to all objects."""
    objects = {each["kind"]: each for each in yaml.safe_load_all((MANIFESTS / name).read_text())}
    for each in objects.values():
        each["metadata"]["labels"] = {"app.kubernetes.io/name": "groupkeeper"}
    return objects


@pytest.mark.parametrize(("values", "manifest"), [({}, "groupkeeper.yaml"), (GATEWAY, "gateway.yaml")])
def test_it_is_the_plain_manifest(values: Mapping[str, str], manifest: str) -> None:
    rendered, written = without_ours(render(*set_flags(values))), plain(manifest)
    assert ports_of(rendered) == ports_of(written)
    for objects in (rendered, written):
        objects["Service"]["spec"].pop("ports")
        for rule in objects["NetworkPolicy"]["spec"]["ingress"]:
            rule.pop("ports")
        container_of(objects).pop("ports")
    assert rendered == written


def test_its_audit_is_the_plain_manifest() -> None:
    objects = render(*set_flags({"audit.enabled": "true"}))
    rendered = {kind.removeprefix("audit/"): each for kind, each in objects.items() if "audit/" in kind}
    assert without_ours(rendered) == plain("audit-cronjob.yaml")


def container_of(objects: Objects) -> dict[str, Any]:
    container: dict[str, Any]
    (container,) = objects["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    return container


def ports_of(objects: Objects) -> dict[str, int]:
    """All ports by name, which are the same for the Service, the container and the network policy."""
    found = {port["name"]: port["port"] for port in objects["Service"]["spec"]["ports"]}
    assert all(port["targetPort"] == port["name"] for port in objects["Service"]["spec"]["ports"])
    assert {port["name"]: port["containerPort"] for port in container_of(objects)["ports"]} == found
    allowed = [port["port"] for rule in objects["NetworkPolicy"]["spec"]["ingress"] for port in rule["ports"]]
    assert sorted(allowed) == sorted(found)
    return found


def test_the_page_installs_the_chart() -> None:
    """The commands of docs/installing.md; without a cluster what they would install is only shown."""
    page = (ROOT / "docs" / "installing.md").read_text()
    installed = []
    for command in (shlex.split(each) for each in commands(page) if each.startswith("helm ")):
        _, verb, release, chart, *flags = command
        assert (verb, release, ROOT / chart) == ("install", "groupkeeper", CHART)
        objects = render(*flags)
        assert container_of(objects)["image"].startswith("REGISTRY/groupkeeper:")
        installed.append(ports_of(objects))
    assert installed == [ports_of(plain("groupkeeper.yaml")), ports_of(plain("gateway.yaml"))]


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
    container = container_of(render(*LARGE, *set_flags(EVERYTHING)))
    settings = settings_of(container)
    assert settings.workers == 3
    assert str(settings.advertise) == "kafka.example.org:9092"
    assert settings.offsets_retention_minutes == 43_200
    assert settings.max_offsets == 20_000_000
    assert settings.log_cleaner_enable is False
    assert settings.min_cleanable_dirty_ratio == 0.25
    assert container["image"] == f"registry.example.org/groupkeeper:{__version__}"


def settings_of(container: dict[str, Any]) -> Settings:
    """What a node takes from the container, in the image."""
    image = stages(ROOT / "Dockerfile")["server"].environment()
    given = {each["name"]: each["value"] for each in container["env"]}
    return load(None, {name: value for name, value in (image | given).items() if name in SETTINGS}, (), {})


def test_each_worker_has_its_ports_everywhere() -> None:
    objects = render(*set_flags({"workers": "2", "serviceMonitor.enabled": "true"}))
    assert ports_of(objects) == {"kafka": 9092, "kafka-2": 9093, "metrics": 9308, "metrics-2": 9309}
    scraped = [endpoint["port"] for endpoint in objects["ServiceMonitor"]["spec"]["endpoints"]]
    assert scraped == ["metrics", "metrics-2"]


def test_a_gateway_has_a_port_for_each_broker_and_for_the_metrics_of_its_processes() -> None:
    objects = render(*set_flags({**GATEWAY, "workers": "2", r"settings.gateway\.workers": "2"}))
    settings = settings_of(container_of(objects))
    config = gateway_config(settings)
    brokers = {f"broker-{id_}": config.client_address_for(id_) for id_ in range(3)}
    assert {str(address) for address in brokers.values()} == {
        "groupkeeper:10000",
        "groupkeeper:10001",
        "groupkeeper:10002",
    }
    assert settings.metrics_listen is not None
    metrics = ["metrics", "metrics-2", "metrics-3", "metrics-4"]
    assert ports_of(objects) == {
        "kafka": 9092,
        "kafka-2": 9093,
        **{name: address.port for name, address in brokers.items() if address is not None},
        **{name: settings.metrics_listen.port + index for index, name in enumerate(metrics)},
    }


def test_with_names_in_tls_a_gateway_has_one_port_for_all_clients() -> None:
    objects = render(*set_flags({**SNI, "serviceMonitor.enabled": "true"}))
    settings = settings_of(container_of(objects))
    address = gateway_config(settings).client_address_for(7)
    assert str(address) == "broker-7.kafka.example:9095"
    metrics = ["metrics", "metrics-2", "metrics-3", "metrics-4"]
    assert ports_of(objects) == {"kafka": 9095, **{name: 9308 + index for index, name in enumerate(metrics)}}
    scraped = [endpoint["port"] for endpoint in objects["ServiceMonitor"]["spec"]["endpoints"]]
    assert scraped == metrics


def test_a_gateway_finds_the_files_that_its_settings_name() -> None:
    objects = render(*set_flags(SNI))
    container = container_of(objects)
    settings = settings_of(container)
    places = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = objects["StatefulSet"]["spec"]["template"]["spec"]["volumes"]
    secrets = {each["secret"]["secretName"]: places[each["name"]] for each in volumes if "secret" in each}
    assert secrets == {name: f"/etc/groupkeeper/{name}" for name in ("kafka-login", "gateway-tls")}
    files = (settings.upstream_sasl_password_file, settings.gateway_ssl_key_location)
    assert [str(file.parent) for file in files if file is not None] == list(secrets.values())


def test_a_load_balancer_has_the_ports_of_clients_alone() -> None:
    """Who may see all groups by HTTP is within the cluster."""
    objects = render(
        *set_flags({**GATEWAY, "service.type": "LoadBalancer", "serviceMonitor.enabled": "true"})
    )
    ports = [
        [port["name"] for port in objects[kind]["spec"]["ports"]] for kind in ("Service", "metrics/Service")
    ]
    assert ports == [["kafka", "broker-0", "broker-1", "broker-2"], ["metrics", "metrics-2"]]
    assert [objects[kind]["spec"].get("type") for kind in ("Service", "metrics/Service")] == [
        "LoadBalancer",
        None,
    ]
    selected = objects["ServiceMonitor"]["spec"]["selector"]["matchLabels"]
    assert selected.items() <= objects["metrics/Service"]["metadata"]["labels"].items()


def test_names_are_no_longer_than_the_api_takes() -> None:
    """52 characters for a CronJob, which names its jobs after itself; 53 are Helm's own limit for a release."""
    objects = render(
        *set_flags({"audit.enabled": "true"}), name="production-payments-of-europe-and-of-the-rest-of-all"
    )
    assert max(len(each["metadata"]["name"]) for each in objects.values()) <= 52


def test_the_audit_of_a_gateway_does_not_ask_it() -> None:
    """A login would be needed, and what is at the cluster is not in the log."""
    for values, asked in (({}, ["--against=groupkeeper:9092"]), (GATEWAY, [])):
        job = render(*set_flags({**values, "audit.enabled": "true"}))["audit/CronJob"]
        (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        assert container["args"] == ["audit", "--log-dirs=/data", "--out=/audit", *asked]


@pytest.mark.parametrize("group", ["jobs-made", 20_000_000, 'a "name": #1'])
def test_the_audit_knows_the_end_group_of_the_settings(group: str | int) -> None:
    settings = json.dumps({"end.group": group})
    job = render("--set-json", f"settings={settings}", "--set", "audit.enabled=true")["audit/CronJob"]
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    name, *flags = container["args"]
    assert name == "audit"
    assert parser().parse_args(flags).end_group == [str(group)]


def test_the_alerting_rules_come_along_where_they_are_wanted() -> None:
    assert "PrometheusRule" not in render()
    rule = render(*set_flags({"prometheusRule.enabled": "true", "prometheusRule.labels.release": "main"}))
    assert rule["PrometheusRule"]["spec"] == yaml.safe_load(RULES.read_text())
    assert rule["PrometheusRule"]["metadata"]["labels"]["release"] == "main"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"gateway.brokers": "{1}"}, "gateway.brokers: only a gateway has ports for brokers"),
        (
            {r"settings.upstream\.bootstrap\.servers": "kafka:9092"},
            "gateway.brokers: list the ids of the cluster's brokers",
        ),
        (
            {**SNI, "gateway.brokers": "{1}"},
            "gateway.brokers: with gateway.sni.pattern all brokers share one",
        ),
        (
            {**GATEWAY, "service.type": "NodePort"},
            "service.type: clients use the ports that a gateway tells them",
        ),
    ],
)
def test_values_that_do_not_go_together_are_refused(values: Mapping[str, str], reason: str) -> None:
    done = helm("template", "some", str(CHART), "--kube-version", "1.31.0", *set_flags(values))
    assert done.returncode != 0
    assert reason in done.stderr


def test_the_chart_knows_the_names_of_all_settings_but_its_own() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    names = {name.replace("_", ".") for name in Settings.__struct_fields__}
    its_own = {"advertise", "data.dir", "listen", "metrics.listen", "workers"}
    assert its_own <= names
    assert list(schema["properties"]["settings"]["properties"]) == sorted(names - its_own)


def test_a_setting_that_there_is_not_is_named() -> None:
    flag = r"settings.log\.flsh=1"
    done = helm("template", "some", str(CHART), "--kube-version", "1.31.0", "--set", flag)
    assert done.returncode != 0
    assert "at '/settings': additional properties 'log.flsh' not allowed" in done.stderr


def test_a_claim_outlives_its_release_and_can_be_one_that_is_there() -> None:
    claim = render()["PersistentVolumeClaim"]
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    objects = render(*set_flags({"persistence.existingClaim": "mine"}))
    assert "PersistentVolumeClaim" not in objects
    volumes = objects["StatefulSet"]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "mine"}} in volumes


def test_a_number_that_helm_would_round_must_be_a_string(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    for value, is_taken in (("9223372036854775807", False), ('"9223372036854775807"', True)):
        values.write_text(f"settings: {{max.compaction.lag.ms: {value}}}\n")
        done = helm("template", "some", str(CHART), "--kube-version", "1.31.0", "--values", str(values))
        assert (done.returncode == 0) == is_taken, done.stderr
        assert ('value: "9223372036854775807"' in done.stdout) == is_taken


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
