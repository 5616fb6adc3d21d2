# SPDX-License-Identifier: Apache-2.0
"""A server that is there to be killed."""

from tests.support.target import own_target

__all__ = ["own_target"]
