# SPDX-License-Identifier: Apache-2.0
"""Notes groups that are in a partition to which they do not belong."""

import numpy as np
import pyarrow as pa

from audit.fold.check_sightings import CheckSightings
from audit.fold.fold_parameters import FoldParameters
from audit.fold.rows import FoldInputRows, Longs
from protocol.placement import partition_for


class PlacementCheck:
    """Checks each group of a range once."""

    def __init__(self, rows: FoldInputRows, rules: FoldParameters, seen: CheckSightings) -> None:
        self._rows = rows
        self._partitions = rules.num_partitions
        self._seen = seen

    def note_misplaced_groups(self, groups: pa.Array, group_of: Longs, rows: Longs) -> None:
        """Note the `rows` whose group, `groups[group_of]`, belongs to another partition."""
        if self._partitions is None or self._rows.partition_number < 0:
            return
        homes = np.fromiter(
            (partition_for(name, self._partitions) for name in groups.to_pylist()), np.int64, len(groups)
        )
        wrong = rows[(homes != self._rows.partition_number)[group_of]]

        def detail(row: int) -> str:
            name = self._rows.value_at("group", row)
            return f"group {name!r} belongs to partition {partition_for(name, self._partitions or 1)}"

        self._seen.add_sighting_of_rows("wrong_partition", wrong, detail, always=True)
