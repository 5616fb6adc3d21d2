# SPDX-License-Identifier: Apache-2.0
"""The settings of a gateway: what they become, and what does not go together."""

import pytest

from coordinator.config import Address, ConfigError, Settings, load

GATEWAY = "upstream.bootstrap.servers=kafka-1:9092, [::1]:9093,"
LOGIN = ("upstream.security.protocol=SASL_SSL", "upstream.sasl.mechanism=PLAIN")
TLS = ("gateway.ssl.certificate.location=c.pem", "gateway.ssl.key.location=k.pem")


def mistake(*assignments: str) -> str:
    """The message of a load that must fail, of a gateway and these."""
    with pytest.raises(ConfigError) as caught:
        load(assignments=[GATEWAY, *assignments])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_list_of_brokers_makes_a_gateway() -> None:
    settings = load(assignments=[GATEWAY])
    assert settings.is_gateway
    assert settings.upstream_bootstrap_servers == (Address("kafka-1", 9092), Address("::1", 9093))


def test_without_brokers_there_is_no_gateway() -> None:
    assert not Settings().is_gateway
    assert not load(assignments=["upstream.bootstrap.servers="]).is_gateway


@pytest.mark.parametrize("setting", ["gateway.port.base=20000", *LOGIN])
def test_a_gateways_settings_without_its_cluster_are_refused(setting: str) -> None:
    """A lost address of the cluster must not make a node by itself, which asks nobody for a password."""
    with pytest.raises(ConfigError, match=r"\(--set\) needs upstream\.bootstrap\.servers$"):
        load(assignments=[setting])


def test_a_gateways_settings_that_are_the_defaults_need_no_cluster() -> None:
    assert not load(assignments=["gateway.workers=1", "upstream.bootstrap.servers="]).is_gateway


@pytest.mark.parametrize("written", ["h", "h:0", ":9092", "h:1,h", "h:1;g:2", ","])
def test_what_is_no_list_of_brokers_is_refused(written: str) -> None:
    with pytest.raises(ConfigError, match="expected HOST:PORT,HOST:PORT"):
        load(assignments=[f"upstream.bootstrap.servers={written}"])


@pytest.mark.parametrize(
    ("assignments", "host"),
    [
        ([], "127.0.0.1"),
        (["advertise=kafka.example:9092"], "kafka.example"),
        (["listen=0.0.0.0:9092", "gateway.host=kafka.example"], "kafka.example"),
        (["gateway.host=::1", "advertise=kafka.example:9092"], "::1"),
    ],
)
def test_clients_hear_of_one_host(assignments: list[str], host: str) -> None:
    assert load(assignments=[GATEWAY, *assignments]).gateway_advertised_host == host


def test_clients_need_a_host_that_they_can_connect_to() -> None:
    assert mistake("listen=:9092").endswith("set gateway.host to the host they use")
    assert mistake("gateway.host=0.0.0.0").endswith("set gateway.host to the host they use")


@pytest.mark.parametrize("host", ["a b", "a/b", "[::1]", "a:1", "a,b"])
def test_a_host_is_no_address(host: str) -> None:
    with pytest.raises(ConfigError, match="expected a host, without a port"):
        load(assignments=[f"gateway.host={host}"])


@pytest.mark.parametrize("given", [LOGIN[:1], LOGIN[1:]])
def test_a_mechanism_and_a_protocol_belong_together(given: tuple[str, ...]) -> None:
    assert "do not fit" in mistake(*given)


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        (LOGIN, "upstream.sasl.username"),
        ((*LOGIN, "upstream.sasl.username=me"), "upstream.sasl.password.file"),
        ((*LOGIN, "upstream.sasl.mechanism=OAUTHBEARER"), "upstream.sasl.oauthbearer.token.file"),
        (TLS[:1], "gateway.ssl.key.location"),
        (TLS[1:], "gateway.ssl.certificate.location"),
        (("gateway.sni.pattern=b-{id}.example",), "gateway.ssl.certificate.location"),
    ],
)
def test_what_a_setting_cannot_do_without_is_named(given: tuple[str, ...], needed: str) -> None:
    assert mistake(*given).endswith(f"(--set) needs {needed}")


@pytest.mark.parametrize("pattern", ["broker.example", "b-{id}.{id}.example", "b {id}", "-{id}..example"])
def test_a_pattern_is_a_host_name_with_one_id(pattern: str) -> None:
    assert "is no host name with one {id}" in mistake(*TLS, f"gateway.sni.pattern={pattern}")
    assert load(assignments=[GATEWAY, *TLS, "gateway.sni.pattern=b-{id}.example"]).gateway_sni_pattern


def test_ports_that_are_shared_by_processes_need_numbers() -> None:
    assert "so these need numbers" in mistake("listen=127.0.0.1:0")


@pytest.mark.parametrize(
    "given",
    [
        ("listen=127.0.0.1:10000",),
        ("listen=127.0.0.1:9999", "workers=2"),
        ("metrics.listen=127.0.0.1:10999",),
        ("metrics.listen=127.0.0.1:9998", "gateway.workers=2"),
        ("gateway.port.base=9308",),
    ],
)
def test_our_own_ports_are_not_among_those_of_brokers(given: tuple[str, ...]) -> None:
    assert "among the 1000 ports of brokers" in mistake(*given)


def test_gateways_need_ports_for_their_metrics() -> None:
    assert "leaves no ports" in mistake("metrics.listen=127.0.0.1:65535")


def test_our_own_ids_stay_numbers_that_kafka_has() -> None:
    assert "is too large for a gateway" in mistake(f"node.id={2**31 - 1_000_001}")


def test_what_only_a_gateway_minds_is_no_mistake_without_one() -> None:
    assert load(assignments=["listen=127.0.0.1:10000"]).listen.port == 10_000
