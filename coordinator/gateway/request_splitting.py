# SPDX-License-Identifier: Apache-2.0
"""Splits requests about groups into parts for their coordinators, and joins the responses to the parts."""

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from coordinator.api.offset_fetch import GROUPS_FROM, TOP_ERROR_FROM
from coordinator.authorization.rule import copy_message_with
from protocol.apis import ApiKey


class GroupRequestSplitter(Protocol):
    """Splits the requests of one api and version, and joins responses; a row is a response's part about one group."""

    def make_partial_request(self, request: Any, groups: Collection[str]) -> Any:
        """Return the part of a request that is about these groups."""

    def get_response_rows(self, request: Any, response: Any) -> list[tuple[str, Any]]:
        """Return the rows of the response to a request, each with its group."""

    def get_error_code(self, row: Any) -> int:
        """Return Kafka's error code for the whole group of a row."""
        code: int = row.error_code
        return code

    def merge_rows(self, request: Any, response: Any, rows: Iterable[tuple[str, Any]]) -> Any:
        """Return a copy of `response` with these rows, in the order in which the request names their groups."""


class _One(GroupRequestSplitter):
    """Passes requests that name one group; the whole response is the row of this group."""

    def make_partial_request(self, request: Any, groups: Collection[str]) -> Any:
        return request

    def get_response_rows(self, request: Any, response: Any) -> list[tuple[str, Any]]:
        return [(request.group_id, response)]

    def merge_rows(self, request: Any, response: Any, rows: Iterable[tuple[str, Any]]) -> Any:
        ((_, row),) = rows
        return row


class _OneInPartitions(_One):
    """Does the same as `_One`, for responses that have the error of the group in each partition."""

    def get_error_code(self, row: Any) -> int:
        codes = {part.error_code for topic in row.topics for part in topic.partitions}
        return codes.pop() if len(codes) == 1 else 0


@dataclass(frozen=True)
class _Several(GroupRequestSplitter):
    """Splits requests with a list of groups, named alone or with details; the response has a list of rows."""

    asked: str
    answered: str

    def make_partial_request(self, request: Any, groups: Collection[str]) -> Any:
        items = [each for each in getattr(request, self.asked) if _name_of(each) in groups]
        return copy_message_with(request, **{self.asked: items})

    def get_response_rows(self, request: Any, response: Any) -> list[tuple[str, Any]]:
        return [(row.group_id, row) for row in getattr(response, self.answered)]

    def merge_rows(self, request: Any, response: Any, rows: Iterable[tuple[str, Any]]) -> Any:
        by_group: dict[str, deque[Any]] = {}
        for group, row in rows:
            by_group.setdefault(group, deque()).append(row)
        names = map(_name_of, getattr(request, self.asked))
        ordered = [by_group[name].popleft() for name in names if by_group.get(name)]
        return copy_message_with(response, **{self.answered: ordered})


def _name_of(asked: Any) -> str:
    name: str = asked if isinstance(asked, str) else asked.group_id
    return name


_ONE: Final = _One()
_ONE_IN_PARTITIONS: Final = _OneInPartitions()
_SEVERAL: Final = {
    ApiKey.DESCRIBE_GROUPS: _Several("groups", "groups"),
    ApiKey.DELETE_GROUPS: _Several("groups_names", "results"),
    ApiKey.OFFSET_FETCH: _Several("groups", "groups"),
}


def find_splitter(api_key: int, version: int) -> GroupRequestSplitter:
    """Return the splitter for requests of DescribeGroups, OffsetFetch, DeleteGroups or OffsetDelete."""
    if api_key == ApiKey.OFFSET_FETCH and version < GROUPS_FROM:
        return _ONE if version >= TOP_ERROR_FROM else _ONE_IN_PARTITIONS
    return _SEVERAL.get(ApiKey(api_key), _ONE)
