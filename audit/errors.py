# SPDX-License-Identifier: Apache-2.0
"""What ends an audit before it has an answer."""


class AuditError(Exception):
    """The audit cannot run, or not go on; the message is for the operator."""
