# SPDX-License-Identifier: Apache-2.0
"""The nightly audit on Spark, which checks whether the log of a node or broker can be trusted.

`make install-audit` installs the dependencies of this package into .venv, and the Dockerfile's stage `audit` into an
image.
"""
