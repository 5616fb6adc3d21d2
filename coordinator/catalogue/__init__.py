# SPDX-License-Identifier: Apache-2.0
"""The topics of a node: names, ids and partition counts, no data.

`catalogue` is the pure state, `store` keeps it on disk, `configs` knows the settings that a topic can have.
The api modules for topics (create_topics and the like) are the only ones that change it.
"""

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.store import CatalogueStore
from coordinator.catalogue.topic import Refusal, Topic

__all__ = ["Catalogue", "CatalogueStore", "Refusal", "Topic"]
