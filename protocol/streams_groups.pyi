# SPDX-License-Identifier: Apache-2.0
# What the schemas make of these classes, as the stubs of kafka-python say it of its own.

from kafka.protocol.api_message import ApiMessage
from kafka.protocol.data_container import DataContainer

class StreamsGroupDescribeRequest(ApiMessage):
    group_ids: list[str]
    include_authorized_operations: bool
    def __init__(
        self,
        *,
        group_ids: list[str] = ...,
        include_authorized_operations: bool = ...,
        version: int | None = None,
    ) -> None: ...

class StreamsGroupDescribeResponse(ApiMessage):
    class DescribedGroup(DataContainer):
        class Topology(DataContainer):
            class Subtopology(DataContainer):
                class TopicInfo(DataContainer):
                    class KeyValue(DataContainer):
                        key: str
                        value: str
                        def __init__(
                            self, *, key: str = ..., value: str = ..., version: int | None = None
                        ) -> None: ...

                    name: str
                    partitions: int
                    replication_factor: int
                    topic_configs: list[KeyValue]
                    def __init__(
                        self,
                        *,
                        name: str = ...,
                        partitions: int = ...,
                        replication_factor: int = ...,
                        topic_configs: list[KeyValue] = ...,
                        version: int | None = None,
                    ) -> None: ...

                subtopology_id: str
                source_topics: list[str]
                repartition_sink_topics: list[str]
                state_changelog_topics: list[TopicInfo]
                repartition_source_topics: list[TopicInfo]
                def __init__(
                    self,
                    *,
                    subtopology_id: str = ...,
                    source_topics: list[str] = ...,
                    repartition_sink_topics: list[str] = ...,
                    state_changelog_topics: list[TopicInfo] = ...,
                    repartition_source_topics: list[TopicInfo] = ...,
                    version: int | None = None,
                ) -> None: ...

            epoch: int
            subtopologies: list[Subtopology] | None
            def __init__(
                self,
                *,
                epoch: int = ...,
                subtopologies: list[Subtopology] | None = ...,
                version: int | None = None,
            ) -> None: ...

        class Member(DataContainer):
            class Endpoint(DataContainer):
                host: str
                port: int
                def __init__(
                    self, *, host: str = ..., port: int = ..., version: int | None = None
                ) -> None: ...

            class KeyValue(DataContainer):
                key: str
                value: str
                def __init__(
                    self, *, key: str = ..., value: str = ..., version: int | None = None
                ) -> None: ...

            class TaskOffset(DataContainer):
                subtopology_id: str
                partition: int
                offset: int
                def __init__(
                    self,
                    *,
                    subtopology_id: str = ...,
                    partition: int = ...,
                    offset: int = ...,
                    version: int | None = None,
                ) -> None: ...

            class Assignment(DataContainer):
                class TaskIds(DataContainer):
                    subtopology_id: str
                    partitions: list[int]
                    def __init__(
                        self,
                        *,
                        subtopology_id: str = ...,
                        partitions: list[int] = ...,
                        version: int | None = None,
                    ) -> None: ...

                active_tasks: list[TaskIds]
                standby_tasks: list[TaskIds]
                warmup_tasks: list[TaskIds]
                def __init__(
                    self,
                    *,
                    active_tasks: list[TaskIds] = ...,
                    standby_tasks: list[TaskIds] = ...,
                    warmup_tasks: list[TaskIds] = ...,
                    version: int | None = None,
                ) -> None: ...

            member_id: str
            member_epoch: int
            instance_id: str | None
            rack_id: str | None
            client_id: str
            client_host: str
            topology_epoch: int
            process_id: str
            user_endpoint: Endpoint | None
            client_tags: list[KeyValue]
            task_offsets: list[TaskOffset]
            task_end_offsets: list[TaskOffset]
            assignment: Assignment
            target_assignment: Assignment
            is_classic: bool
            def __init__(
                self,
                *,
                member_id: str = ...,
                member_epoch: int = ...,
                instance_id: str | None = ...,
                rack_id: str | None = ...,
                client_id: str = ...,
                client_host: str = ...,
                topology_epoch: int = ...,
                process_id: str = ...,
                user_endpoint: Endpoint | None = ...,
                client_tags: list[KeyValue] = ...,
                task_offsets: list[TaskOffset] = ...,
                task_end_offsets: list[TaskOffset] = ...,
                assignment: Assignment = ...,
                target_assignment: Assignment = ...,
                is_classic: bool = ...,
                version: int | None = None,
            ) -> None: ...

        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        topology: Topology | None
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
            topology: Topology | None = ...,
            members: list[Member] = ...,
            authorized_operations: set[int] = ...,
            version: int | None = None,
        ) -> None: ...

    throttle_time_ms: int
    groups: list[DescribedGroup]
    def __init__(
        self, *, throttle_time_ms: int = ..., groups: list[DescribedGroup] = ..., version: int | None = None
    ) -> None: ...
