# SPDX-License-Identifier: Apache-2.0
"""The nightly audit: what the log of a node or broker says, and whether it can be trusted, on Spark.

`make install-audit` brings what this package needs into .venv, and the Dockerfile's stage `audit` into an image.
"""
