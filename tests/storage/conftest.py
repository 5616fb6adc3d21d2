# SPDX-License-Identifier: Apache-2.0
"""Imports kafka-python once, where its use of a deprecated function is not yet an error."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.record  # noqa: F401
