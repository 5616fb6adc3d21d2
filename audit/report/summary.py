# SPDX-License-Identifier: Apache-2.0
"""summary.json: the audit for programs."""

import msgspec

from audit.report.model import Report


def summary_json(report: Report) -> bytes:
    """The findings, and how much was looked at; `seconds` is how long the audit took."""
    run = report.run
    content = {
        "as_of_ms": run.as_of_ms,
        "log_dirs": run.log_dirs.split(","),
        "against": report.against,
        "partitions": run.partitions,
        "records": run.records,
        "bytes": run.bytes,
        "groups": run.groups,
        "offsets": run.offsets,
        "seconds": run.seconds,
        "findings": report.findings,
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"
