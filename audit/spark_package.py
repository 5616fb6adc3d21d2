# SPDX-License-Identifier: Apache-2.0
"""The package for clusters that run the audit: `python -m audit.spark_package DIRECTORY` writes two zips there.

    groupkeeper-audit.zip            the code, for spark-submit --py-files
    groupkeeper-audit-libraries.zip  compiled libraries, which Python does not import from a zip, for --archives

    spark-submit --py-files groupkeeper-audit.zip --archives groupkeeper-audit-libraries.zip#libraries \\
        --conf spark.executorEnv.PYTHONPATH=libraries ...

The libraries are those of this machine's Python and platform; the executors' must be the same. numpy, pandas and
pyarrow, which clusters with PySpark have, are not in it.
"""

import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

from audit.errors import AuditError

PACKAGES: Final = ("audit", "protocol", "storage")
LIBRARIES: Final = ("crc32c", "cramjam", "msgspec")
CODE_ZIP: Final = "groupkeeper-audit.zip"
LIBRARIES_ZIP: Final = "groupkeeper-audit-libraries.zip"

_ROOT: Final = Path(__file__).resolve().parents[1]


def write_code_and_library_zips(directory: Path) -> tuple[Path, Path]:
    """Write both zips, and return their paths. Raises AuditError for a library that is not installed, and OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    code, libraries = directory / CODE_ZIP, directory / LIBRARIES_ZIP
    _write(code, ((path, path.relative_to(_ROOT).as_posix()) for path in _code()))
    _write(libraries, _libraries())
    return code, libraries


def _code() -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted((_ROOT / package).rglob("*")):
            if path.is_file() and path.suffix != ".so" and "__pycache__" not in path.parts:
                yield path


def _libraries() -> Iterator[tuple[Path, str]]:
    for name in LIBRARIES:
        try:
            found = files(name) or []
        except PackageNotFoundError as error:
            raise AuditError(f"{name} is not installed: make install-audit") from error
        for path in found:
            if "__pycache__" not in path.parts and ".." not in path.parts:
                yield Path(str(path.locate())), path.as_posix()


def _write(target: Path, content: Iterator[tuple[Path, str]]) -> None:
    with ZipFile(target, "w", ZIP_DEFLATED) as out:
        for path, name in content:
            out.write(path, name)


if __name__ == "__main__":
    for written in write_code_and_library_zips(Path(sys.argv[1] if len(sys.argv) > 1 else "dist")):
        sys.stdout.write(f"{written}\n")
