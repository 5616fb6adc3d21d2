# SPDX-License-Identifier: Apache-2.0
"""An attack on a gateway: does its memory stay within bounds and come back, and what does somebody else feel of it?

`mix` has what is sent, made from a seed; `attacker` is a process that sends it. `client` is somebody else, `memory`
samples the gateway's process, `stage` starts what there is, and `cli` runs and judges all of it.
"""
