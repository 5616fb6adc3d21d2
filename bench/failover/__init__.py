# SPDX-License-Identifier: Apache-2.0
"""A gateway's process is killed: how long until the next one answers, and until clients have got through again.

`clients` commit all the time, `cli` kills and measures, and `tables` shows it.
"""
