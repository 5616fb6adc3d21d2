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


NODE = {document["kind"]: document for document in documents(MANIFESTS / "groupkeeper.yaml")}
POD = NODE["StatefulSet"]["spec"]["template"]
(AUDIT,) = documents(MANIFESTS / "audit-cronjob.yaml")
AUDIT_POD = AUDIT["spec"]["jobTemplate"]["spec"]["template"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("file", sorted(MANIFESTS.iterdir()), ids=lambda file: file.name)
def test_the_api_takes_the_manifests(file: Path, version: str) -> None:
    for document in documents(file):
        kubernetes_validate.validate(document, version, strict=True)


def test_a_manifest_with_a_wrong_name_is_found() -> None:
    wrong = {**NODE["PodDisruptionBudget"], "spec": {"maxUnavailible": 1}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_the_pod_fits_the_image() -> None:
    (container,) = POD["spec"]["containers"]
    security = POD["spec"]["securityContext"]
    assert IMAGE.values("USER") == [f"{security['runAsUser']}:{security['runAsGroup']}"]
    assert IMAGE.values("EXPOSE") == [" ".join(str(port["containerPort"]) for port in container["ports"])]
    assert IMAGE.values("VOLUME")[0] in {mount["mountPath"] for mount in container["volumeMounts"]}
    assert POD["spec"]["terminationGracePeriodSeconds"] > Settings().shutdown_timeout_ms / 1000


def test_sigterm_is_the_drain_and_no_hook_delays_it() -> None:
    """What a stop answers, refuses and leaves behind is shown by tests/net/test_stop.py."""
    (container,) = POD["spec"]["containers"]
    assert "lifecycle" not in container
    assert IMAGE.values("STOPSIGNAL") == ["SIGTERM"]


def test_clients_find_the_node_at_the_address_that_it_advertises() -> None:
    (container,) = POD["spec"]["containers"]
    service = NODE["Service"]
    ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
    assert container["env"] == [
        {"name": "GROUPKEEPER_ADVERTISE", "value": f"{service['metadata']['name']}:{ports['kafka']}"}
    ]
    labels = POD["metadata"]["labels"]
    selectors = [
        service["spec"]["selector"],
        NODE["StatefulSet"]["spec"]["selector"]["matchLabels"],
        NODE["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        NODE["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector.items() <= labels.items() for selector in selectors)


def test_the_audit_reads_the_nodes_volume_and_may_ask_the_node() -> None:
    claims = {volume["persistentVolumeClaim"]["claimName"] for volume in AUDIT_POD["spec"]["volumes"][:1]}
    assert claims == {NODE["PersistentVolumeClaim"]["metadata"]["name"]}
    clients, _ = NODE["NetworkPolicy"]["spec"]["ingress"]
    assert AUDIT_POD["metadata"]["labels"] == clients["from"][0]["podSelector"]["matchLabels"]
