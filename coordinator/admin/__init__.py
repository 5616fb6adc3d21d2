# SPDX-License-Identifier: Apache-2.0
"""What operators ask over HTTP."""
