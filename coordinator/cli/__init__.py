# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper`: serve a node, look at groups, print the settings.

Modules import at their head only what every command needs: `serve` has to listen within 0.6 s.
"""
