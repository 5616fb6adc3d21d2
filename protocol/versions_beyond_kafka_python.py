# SPDX-License-Identifier: Apache-2.0
"""ApiVersions v0-v5 and DeleteGroups v0-v3, whose newest versions kafka-python lacks.

ApiVersions v5 adds the cluster and the node that the client expects to have reached (KIP-1242), DeleteGroups v3 error
messages.

The classes derive from kafka-python's, so that its clients in the same process can use them. The fields of these
messages are in their schemas, and for mypy in the stub of this module.
"""

from kafka.protocol.admin import groups
from kafka.protocol.metadata import api_versions

__all__ = ["ApiVersionsRequest", "ApiVersionsResponse", "DeleteGroupsRequest", "DeleteGroupsResponse"]


class ApiVersionsRequest(api_versions.ApiVersionsRequest, load_json="protocol.schemas"):
    """The client's software, and the cluster and node that it expects."""


class ApiVersionsResponse(api_versions.ApiVersionsResponse, load_json="protocol.schemas"):
    """The APIs and versions that are served."""


class DeleteGroupsRequest(groups.DeleteGroupsRequest, load_json="protocol.schemas"):
    """The ids of the groups to delete."""


class DeleteGroupsResponse(groups.DeleteGroupsResponse, load_json="protocol.schemas"):
    """The result of each group's deletion, with its error."""
