# SPDX-License-Identifier: Apache-2.0
"""The topics of a node: names, ids, partition counts and settings, no data.

`topics` has the rules, `catalogue` is the pure state, `catalogue_writer` makes a change visible once it is stored,
`store` stores it on disk (`file`, `file_format`), `limits` bounds the topics, `topic_configs` knows the settings that
topics can have. Only the api modules for topics (create_topics and the like) change the catalogue.
"""

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.store import CatalogueStore
from coordinator.catalogue.topic import Refusal, Topic

__all__ = ["Catalogue", "CatalogueStore", "Refusal", "Topic"]
