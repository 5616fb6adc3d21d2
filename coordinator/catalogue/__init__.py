# SPDX-License-Identifier: Apache-2.0
"""The topics of a node: names, ids and partition counts, no data.

`topics` has the rules, `catalogue` is the pure state, `keeper` makes a change visible once it is kept, `store` keeps it
on disk (`file`, `file_format`), `limits` says how much there may be, `configs` knows the settings that topics can have.
The api modules for topics (create_topics and the like) are the only ones that change it.
"""

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.store import CatalogueStore
from coordinator.catalogue.topic import Refusal, Topic

__all__ = ["Catalogue", "CatalogueStore", "Refusal", "Topic"]
