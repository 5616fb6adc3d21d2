# SPDX-License-Identifier: Apache-2.0
"""Generates `protocol/hot/` from the message schemas that kafka-python ships (Apache Kafka's own JSON).

`python -m protocol.codegen` writes the modules, `--check` only checks that they are up to date. Nothing
here is imported at run time.

The generated functions are flat: one per message and version, without a branch on the version, neighbours of
fixed size in one Struct. `schema` is the model of a message, `layout` that of one version of it on the wire,
`message_classes`, `decoder` and `encoder` write code for that, `module` puts a file together.
"""
