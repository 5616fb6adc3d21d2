# SPDX-License-Identifier: Apache-2.0
"""Decodes many batches at once into Arrow columns, for readers of a whole log and not of a group.

The package needs numpy and pyarrow, which the node does not have: no module that serves may import it.

- `schema` names the columns; `numbers` reads many integers at once
- `batch_finder` finds the batches in a file, also behind damage, in chunks of bounded size
- `record_columns` decodes the records of offsets in bulk; `record_by_record_decoder` decodes every record, slowly: it
  handles
  rare records, and the bulk path is tested against it
- `decode` puts both together
"""
