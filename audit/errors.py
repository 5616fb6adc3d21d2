# SPDX-License-Identifier: Apache-2.0
"""The error that ends an audit before it has a result."""


class AuditError(Exception):
    """The audit cannot run, or not go on; the message is for the operator."""
