# SPDX-License-Identifier: Apache-2.0
# The fields that the schemas add to kafka-python's classes.

from kafka.protocol.admin import groups
from kafka.protocol.data_container import DataContainer
from kafka.protocol.metadata import api_versions

__all__ = ["ApiVersionsRequest", "ApiVersionsResponse", "DeleteGroupsRequest", "DeleteGroupsResponse"]

class ApiVersionsRequest(api_versions.ApiVersionsRequest):
    cluster_id: str | None
    node_id: int
    def __init__(
        self,
        *,
        client_software_name: str = ...,
        client_software_version: str = ...,
        cluster_id: str | None = ...,
        node_id: int = ...,
        version: int | None = None,
    ) -> None: ...

class ApiVersionsResponse(api_versions.ApiVersionsResponse): ...
class DeleteGroupsRequest(groups.DeleteGroupsRequest): ...

class DeleteGroupsResponse(groups.DeleteGroupsResponse):
    class DeletableGroupResult(DataContainer):
        group_id: str
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            group_id: str = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            version: int | None = None,
        ) -> None: ...

    results: list[DeletableGroupResult]  # type: ignore[assignment]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        results: list[DeletableGroupResult] = ...,
        version: int | None = None,
    ) -> None: ...
