# SPDX-License-Identifier: Apache-2.0
"""What a node serves, as tables for tests: made of the apis' declarations, as a node's are."""

from collections.abc import Mapping
from typing import Any, Final

from coordinator.api.declaration import Api
from coordinator.api.table import load_declared_apis
from protocol.apis import ApiKey, VersionRange

APIS: Final[Mapping[ApiKey, Api[Any, Any]]] = {api.key: api for api in load_declared_apis()}
SUPPORTED: Final[Mapping[ApiKey, VersionRange]] = {key: api.versions for key, api in APIS.items()}
FIRST_FLEXIBLE: Final[Mapping[ApiKey, int]] = {key: api.schema.first_flexible for key, api in APIS.items()}
FRAME_BYTES_MAX: Final[Mapping[int, int]] = {key: api.frame.bytes_max for key, api in APIS.items()}
"""Of a node whose batches are short."""
