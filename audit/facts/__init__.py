# SPDX-License-Identifier: Apache-2.0
"""What the log says, as small tables that checks ask: planned here, read by audit.run."""
