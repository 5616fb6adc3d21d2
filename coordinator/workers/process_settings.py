# SPDX-License-Identifier: Apache-2.0
"""Derives each worker's settings (id, address, ports) and each gateway's from the settings of one node."""

from pathlib import Path
from typing import Any

from msgspec.structs import asdict, replace

from coordinator.config import Address, Settings
from coordinator.config.settings import GATEWAY_NODE_ID
from coordinator.gateway.config import GatewayConfig


def node_ids(settings: Settings) -> list[int]:
    """Return the ids of all workers. Behind a gateway no broker of the cluster may have one of them."""
    return [_node_id(settings, index) for index in range(settings.workers)]


def _node_id(settings: Settings, index: int) -> int:
    return settings.node_id + index + (GATEWAY_NODE_ID if settings.is_gateway else 0)


def worker_settings(settings: Settings, index: int) -> Settings:
    """Return the settings of the worker with this number, counted from 0."""
    listen = _shifted(settings.listen, index)
    node_id = _node_id(settings, index)
    return replace(
        settings,
        node_id=node_id,
        data_dir=settings.data_dir.absolute(),  # a worker runs in another directory
        listen=listen,
        advertise=_advertised(settings, node_id, listen)
        if settings.is_gateway
        else settings.advertise and _shifted(settings.advertise, index),
        metrics_listen=settings.metrics_listen and _shifted(settings.metrics_listen, index),
    )


def gateway_settings(settings: Settings, index: int) -> Settings:
    """Return the settings of the gateway with this number, counted from 0: its metrics port follows the workers'.

    All paths are absolute, because the gateway runs in another directory.
    """
    metrics = settings.metrics_listen and _shifted(settings.metrics_listen, settings.workers + index)
    return replace(replace_with_absolute_paths(settings), metrics_listen=metrics)


def replace_with_absolute_paths(settings: Settings) -> Settings:
    """Return the settings for a process that runs in another directory."""
    changed: dict[str, Any] = {
        name: value.absolute() for name, value in asdict(settings).items() if isinstance(value, Path)
    }
    return replace(settings, **changed)


def gateway_config(settings: Settings) -> GatewayConfig:
    """Return the gateway's part of the settings."""
    return GatewayConfig(
        host=settings.gateway_advertised_host,
        port_base=settings.gateway_port_base,
        bind_host=settings.listen.host,
        max_connections=settings.max_connections,
        max_connections_per_ip=settings.max_connections_per_ip,
        idle_ms=settings.connections_max_idle_ms,
        request_bytes_max=settings.socket_request_max_bytes,
        kept_bytes_max=settings.connections_unsent_max_bytes,
        unread_ms_max=settings.connections_unread_max_ms,
        message_bytes_max=settings.message_max_bytes,
        unreachable_timeout_ms=settings.gateway_unreachable_timeout_ms,
        authorization_cache_ms=settings.gateway_authorization_cache_ms,
        certificate=settings.gateway_ssl_certificate_location,
        key=settings.gateway_ssl_key_location,
        sni_pattern=settings.gateway_sni_pattern,
        sni_port=settings.gateway_sni_port,
        asks_for_login=settings.upstream_security_protocol.startswith("SASL_"),
        upstream_tls=settings.upstream_security_protocol in ("SSL", "SASL_SSL"),
        upstream_ca=settings.upstream_ssl_ca_location,
        upstream_names_checked=settings.upstream_ssl_endpoint_identification,
    )


def _shifted(address: Address, index: int) -> Address:
    return Address(address.host, address.port + index if address.port else 0)


def _advertised(settings: Settings, node_id: int, listen: Address) -> Address:
    """Return the address at which clients of a gateway find one of our nodes: a port, or a name, of its own."""
    if settings.gateway_sni_pattern is not None:
        return Address(settings.gateway_sni_pattern.replace("{id}", str(node_id)), settings.gateway_sni_port)
    return Address(settings.gateway_advertised_host, listen.port)
