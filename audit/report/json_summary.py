# SPDX-License-Identifier: Apache-2.0
"""The audit for programs, in the file summary.json."""

import msgspec

from audit.report.model import Report


def summary_json(report: Report) -> bytes:
    """Return the findings and the size of the audited log as JSON; `seconds` is the duration of the audit."""
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
