# SPDX-License-Identifier: Apache-2.0
# The fields of these classes, which the schemas make, in the form of kafka-python's stubs.

from uuid import UUID

from kafka.protocol.api_message import ApiMessage
from kafka.protocol.data_container import DataContainer

class ConsumerGroupDescribeRequest(ApiMessage):
    group_ids: list[str]
    include_authorized_operations: bool
    def __init__(
        self,
        *,
        group_ids: list[str] = ...,
        include_authorized_operations: bool = ...,
        version: int | None = None,
    ) -> None: ...

class ConsumerGroupDescribeResponse(ApiMessage):
    class DescribedGroup(DataContainer):
        class Member(DataContainer):
            class Assignment(DataContainer):
                class TopicPartitions(DataContainer):
                    topic_id: UUID
                    topic_name: str
                    partitions: list[int]
                    def __init__(
                        self,
                        *,
                        topic_id: UUID = ...,
                        topic_name: str = ...,
                        partitions: list[int] = ...,
                        version: int | None = None,
                    ) -> None: ...

                topic_partitions: list[TopicPartitions]
                def __init__(
                    self, *, topic_partitions: list[TopicPartitions] = ..., version: int | None = None
                ) -> None: ...

            member_id: str
            instance_id: str | None
            rack_id: str | None
            member_epoch: int
            client_id: str
            client_host: str
            subscribed_topic_names: list[str]
            subscribed_topic_regex: str | None
            assignment: Assignment
            target_assignment: Assignment
            member_type: int
            def __init__(
                self,
                *,
                member_id: str = ...,
                instance_id: str | None = ...,
                rack_id: str | None = ...,
                member_epoch: int = ...,
                client_id: str = ...,
                client_host: str = ...,
                subscribed_topic_names: list[str] = ...,
                subscribed_topic_regex: str | None = ...,
                assignment: Assignment = ...,
                target_assignment: Assignment = ...,
                member_type: int = ...,
                version: int | None = None,
            ) -> None: ...

        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        assignor_name: str
        members: list[Member]
        authorized_operations: set[int]
        def __init__(
            self,
            *,
            error_code: int = ...,
            error_message: str | None = ...,
            group_id: str = ...,
            group_state: str = ...,
            group_epoch: int = ...,
            assignment_epoch: int = ...,
            assignor_name: str = ...,
            members: list[Member] = ...,
            authorized_operations: set[int] = ...,
            version: int | None = None,
        ) -> None: ...

    throttle_time_ms: int
    groups: list[DescribedGroup]
    def __init__(
        self, *, throttle_time_ms: int = ..., groups: list[DescribedGroup] = ..., version: int | None = None
    ) -> None: ...

class ConsumerGroupHeartbeatRequest(ApiMessage):
    group_id: str
    member_id: str
    member_epoch: int
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        member_epoch: int = ...,
        version: int | None = None,
    ) -> None: ...

class ConsumerGroupHeartbeatResponse(ApiMessage):
    error_code: int
    def __init__(self, *, error_code: int = ..., version: int | None = None) -> None: ...
