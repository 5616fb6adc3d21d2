# SPDX-License-Identifier: Apache-2.0
"""ApiVersions v0-v5 and DeleteGroups v0-v3, whose newest versions kafka-python lacks.

ApiVersions v5: the cluster and the node that the client means to have reached (KIP-1242). DeleteGroups v3: error
messages.

They derive from kafka-python's, so that its clients in the same process read with these what they read with those. What
is in these messages is in their schemas; the stub beside this says it to mypy.
"""

from kafka.protocol.admin import groups
from kafka.protocol.metadata import api_versions

__all__ = ["ApiVersionsRequest", "ApiVersionsResponse", "DeleteGroupsRequest", "DeleteGroupsResponse"]


class ApiVersionsRequest(api_versions.ApiVersionsRequest, load_json="protocol.schemas"):
    """Who asks what is served, and whom."""


class ApiVersionsResponse(api_versions.ApiVersionsResponse, load_json="protocol.schemas"):
    """What is served."""


class DeleteGroupsRequest(groups.DeleteGroupsRequest, load_json="protocol.schemas"):
    """Which groups to delete."""


class DeleteGroupsResponse(groups.DeleteGroupsResponse, load_json="protocol.schemas"):
    """Which groups were deleted, and why others were not."""
