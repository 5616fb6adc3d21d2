# SPDX-License-Identifier: Apache-2.0
"""The manifests: the schemas of Kubernetes' own api take them, and they fit the image and each other."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from bench.installed import ROOT
from coordinator.config import Settings
from tests.packaging.image import stages

MANIFESTS = ROOT / "deploy" / "kubernetes"
VERSIONS = ("1.29", "1.31", "1.33")
IMAGE = stages(ROOT / "Dockerfile")["server"]


def documents(file: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(file.read_text()))


def by_kind(name: str) -> dict[str, dict[str, Any]]:
    return {document["kind"]: document for document in documents(MANIFESTS / name)}


NODE = by_kind("groupkeeper.yaml")
GATEWAY = by_kind("gateway.yaml")
AUDIT = by_kind("audit-cronjob.yaml")
AUDIT_POD = AUDIT["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]

of_both = pytest.mark.parametrize("objects", [NODE, GATEWAY], ids=["node", "gateway"])


def pod_of(objects: dict[str, dict[str, Any]]) -> dict[str, Any]:
    pod: dict[str, Any] = objects["StatefulSet"]["spec"]["template"]
    return pod


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("file", sorted(MANIFESTS.iterdir()), ids=lambda file: file.name)
def test_the_api_takes_the_manifests(file: Path, version: str) -> None:
    for document in documents(file):
        kubernetes_validate.validate(document, version, strict=True)


def test_a_manifest_with_a_wrong_name_is_found() -> None:
    wrong = {**NODE["PodDisruptionBudget"], "spec": {"maxUnavailible": 1}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


@of_both
def test_the_pod_fits_the_image(objects: dict[str, dict[str, Any]]) -> None:
    pod = pod_of(objects)["spec"]
    (container,) = pod["containers"]
    security = pod["securityContext"]
    assert IMAGE.values("USER") == [f"{security['runAsUser']}:{security['runAsGroup']}"]
    exposed = {int(port) for port in IMAGE.values("EXPOSE")[0].split()}
    assert exposed <= {port["containerPort"] for port in container["ports"]}
    assert IMAGE.values("VOLUME")[0] in {mount["mountPath"] for mount in container["volumeMounts"]}
    assert pod["terminationGracePeriodSeconds"] > Settings().shutdown_timeout_ms / 1000


@of_both
def test_sigterm_is_the_drain_and_no_hook_delays_it(objects: dict[str, dict[str, Any]]) -> None:
    """What a stop answers, refuses and leaves behind is shown by tests/net/test_stop.py."""
    (container,) = pod_of(objects)["spec"]["containers"]
    assert "lifecycle" not in container
    assert IMAGE.values("STOPSIGNAL") == ["SIGTERM"]


@of_both
def test_clients_find_the_node_at_the_address_that_it_advertises(objects: dict[str, dict[str, Any]]) -> None:
    (container,) = pod_of(objects)["spec"]["containers"]
    service = objects["Service"]
    ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
    advertised = {"name": "GROUPKEEPER_ADVERTISE", "value": f"{service['metadata']['name']}:{ports['kafka']}"}
    assert advertised in container["env"]
    assert ports == {port["name"]: port["containerPort"] for port in container["ports"]}
    allowed = [port["port"] for rule in objects["NetworkPolicy"]["spec"]["ingress"] for port in rule["ports"]]
    assert sorted(allowed) == sorted(ports)
    labels = pod_of(objects)["metadata"]["labels"]
    selectors = [
        service["spec"]["selector"],
        objects["StatefulSet"]["spec"]["selector"]["matchLabels"],
        objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector.items() <= labels.items() for selector in selectors)


def test_the_audit_reads_the_nodes_volume_and_may_ask_the_node() -> None:
    """Its claims are in a manifest, and it runs where the node's pod does, whose claim is on one machine."""
    claims = [volume["persistentVolumeClaim"]["claimName"] for volume in AUDIT_POD["spec"]["volumes"][:2]]
    assert claims == [objects["PersistentVolumeClaim"]["metadata"]["name"] for objects in (NODE, AUDIT)]
    (beside,) = AUDIT_POD["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert beside["labelSelector"]["matchLabels"] == pod_of(NODE)["metadata"]["labels"]
    assert beside["topologyKey"] == "kubernetes.io/hostname"
    clients, _ = NODE["NetworkPolicy"]["spec"]["ingress"]
    assert AUDIT_POD["metadata"]["labels"] == clients["from"][0]["podSelector"]["matchLabels"]
