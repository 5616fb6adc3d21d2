# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper`: serves a node, shows groups, prints the settings.

Modules import at their head only what every command needs, because `serve` has to listen within 0.6 s.
"""
