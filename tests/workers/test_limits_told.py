# SPDX-License-Identifier: Apache-2.0
"""What clients of a cluster cannot do through a gateway is in its log from the start."""

import pytest

from bench.ports import free_ports
from tests.support.waiting import wait_until
from tests.workers.fronting import Fronting

pytestmark = pytest.mark.process

KERBEROS = "GSSAPI (Kerberos) does not pass a gateway"
CERTIFICATES = "client certificates do not pass a gateway"


def test_kerberos_and_client_certificates_are_told_not_to_pass(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    tmp_path = tmp_path_factory.mktemp("told")  # short, as the paths of sockets have to be
    password = tmp_path / "password"
    password.write_text("secret\n")
    (nobody_listens,) = free_ports(1)
    front = Fronting(
        tmp_path / "f",
        f"127.0.0.1:{nobody_listens}",
        {
            "upstream.security.protocol": "SASL_SSL",
            "upstream.sasl.mechanism": "PLAIN",
            "upstream.sasl.username": "alice",
            "upstream.sasl.password.file": str(password),
        },
    )
    try:
        front.launch()
        wait_until(
            lambda: KERBEROS in front.log_text() and CERTIFICATES in front.log_text(),
            60,
            what=lambda: f"both lines:\n{front.log_text()}",
        )
        assert "secret" not in front.log_text()
    finally:
        front.close()
