# SPDX-License-Identifier: Apache-2.0
"""Groups of the classic protocol: their members, generations and assignments."""
