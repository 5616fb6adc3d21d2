# SPDX-License-Identifier: Apache-2.0
"""Which offsets a reset sets: pure, of what was asked and what is there."""
