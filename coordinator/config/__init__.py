# SPDX-License-Identifier: Apache-2.0
"""The settings under Kafka's names, from defaults, one TOML file, the environment and flags.

`settings` declares them, `values` turns what was written into typed values, `sources` reads and merges,
`example` prints them all with their defaults. msgspec takes the place of pydantic-settings, whose import
costs 100 ms of the 600 that the whole start may take.

Adding a setting: one field in `settings.Settings`, then `groupkeeper settings > deploy/config.example.toml`.
"""

from coordinator.config.settings import Settings
from coordinator.config.sources import load
from coordinator.config.values import Address, ConfigError

__all__ = ["Address", "ConfigError", "Settings", "load"]
