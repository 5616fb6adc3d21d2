# SPDX-License-Identifier: Apache-2.0
# The fields that are read of these classes, which the schemas make.

from typing import Any

from kafka.protocol.api_message import ApiMessage
from kafka.protocol.data_container import DataContainer

class _Request(ApiMessage):
    group_ids: list[str]
    include_authorized_operations: bool
    def __init__(
        self,
        *,
        group_ids: list[str] = ...,
        include_authorized_operations: bool = ...,
        version: int | None = None,
    ) -> None: ...

class _Response(ApiMessage):
    class DescribedGroup(DataContainer):
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        members: list[Any]
        def __init__(
            self,
            *,
            error_code: int = ...,
            error_message: str | None = ...,
            group_id: str = ...,
            group_state: str = ...,
            members: list[Any] = ...,
            version: int | None = None,
        ) -> None: ...

    throttle_time_ms: int
    groups: list[DescribedGroup]
    def __init__(
        self, *, throttle_time_ms: int = ..., groups: list[DescribedGroup] = ..., version: int | None = None
    ) -> None: ...

class StreamsGroupDescribeRequest(_Request): ...
class StreamsGroupDescribeResponse(_Response): ...
class ShareGroupDescribeRequest(_Request): ...
class ShareGroupDescribeResponse(_Response): ...
