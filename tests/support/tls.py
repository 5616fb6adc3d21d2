# SPDX-License-Identifier: Apache-2.0
"""A certificate authority for tests, made with the openssl command."""

import shutil
import subprocess
from pathlib import Path

from tests.support.missing import skip_or_fail

_DAYS = 2


class TestAuthority:
    """Signs certificates for servers on loopback, good for two days; its files lie under one directory."""

    __test__ = False

    def __init__(self, work: Path, name: str = "Groupkeeper test CA") -> None:
        """Make a key and a certificate of its own; skips the test where there is no openssl (fails it in CI)."""
        found = shutil.which("openssl")
        self._openssl = found if found else skip_or_fail("there is no openssl to make certificates with")
        self._work = work
        work.mkdir(parents=True, exist_ok=True)
        self.certificate = work / "ca.pem"
        """The authority's certificate, which clients trust: PEM."""
        self._key = work / "ca.key"
        self._run(
            "req",
            "-x509",
            *_new_key(self._key),
            "-subj",
            f"/CN={name}",
            "-days",
            str(_DAYS),
            "-out",
            self.certificate,
        )

    def issue(self, name: str, *hosts: str, days: int = _DAYS) -> tuple[Path, Path]:
        """Return the files of a certificate and its key (PEM, not encrypted) for these DNS names.

        127.0.0.1 and localhost are in it as well, unless hosts are named. With 0 days it has expired at once.
        """
        certificate, key, request = (self._work / f"{name}.{kind}" for kind in ("pem", "key", "csr"))
        names = [f"DNS:{host}" for host in hosts] or ["DNS:localhost", "IP:127.0.0.1"]
        extension = self._work / f"{name}.ext"
        extension.write_text(f"subjectAltName={','.join(names)}\n")
        self._run("req", *_new_key(key), "-subj", f"/CN={name}", "-out", request)
        self._run(
            *(
                "x509",
                "-req",
                "-in",
                request,
                "-CA",
                self.certificate,
                "-CAkey",
                self._key,
                "-CAcreateserial",
            ),
            *("-days", str(days), "-extfile", extension, "-out", certificate),
        )
        return certificate, key

    def key_store(self, name: str, *hosts: str) -> Path:
        """Return one PEM file with a new key and its certificate, as Kafka's `ssl.keystore.type=PEM` reads it."""
        certificate, key = self.issue(name, *hosts)
        store = self._work / f"{name}.store.pem"
        store.write_bytes(key.read_bytes() + certificate.read_bytes() + self.certificate.read_bytes())
        return store

    def _run(self, *arguments: str | Path) -> None:
        command = [self._openssl, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}:\n{done.stderr}"


def _new_key(path: Path) -> tuple[str | Path, ...]:
    return ("-newkey", "rsa:2048", "-nodes", "-keyout", path)
