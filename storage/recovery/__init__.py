# SPDX-License-Identifier: Apache-2.0
"""What is done with a directory before it serves: recovery, checks, repair, and the settling of what workers left."""
