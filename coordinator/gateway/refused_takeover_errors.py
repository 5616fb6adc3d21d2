# SPDX-License-Identifier: Apache-2.0
"""The errors of a JoinGroup, or a commit without a member, for a group that cannot be taken over.

A gateway of classic groups takes the place of a broker that coordinates groups of all kinds. So a client gets here the
responses of Kafka 4.3 and 4.4:

| the group at the cluster | JoinGroup | OffsetCommit without a generation |
|---|---|---|
| classic or consumer (KIP-848), with members | joins them | UNKNOWN_MEMBER_ID |
| streams (KIP-1071), with members | INCONSISTENT_GROUP_PROTOCOL | UNKNOWN_MEMBER_ID |
| classic, consumer or streams, without any | a classic group with its offsets | is stored |
| share (KIP-932), with members or without | INCONSISTENT_GROUP_PROTOCOL | GROUP_ID_NOT_FOUND |

(GroupMetadataManager.classicGroupJoin, and validateOffsetCommit of ClassicGroup, ConsumerGroup, StreamsGroup and
ShareGroup.) Groups of the third row are taken over. No client can join members that are at the cluster, so the error
COORDINATOR_LOAD_IN_PROGRESS lets it wait until they are gone, or have moved here.
"""

from typing import Final, NamedTuple

from coordinator.cluster_requests.model import ClusterGroupState
from coordinator.migration.model import AdoptResult
from protocol.apis import ApiKey
from protocol.errors import ErrorCode

LOADING: Final = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class TakeoverErrors(NamedTuple):
    """The errors for requests that take a group over; both are NONE if the group may be served."""

    join: ErrorCode
    commit: ErrorCode

    def error_for_api(self, api_key: int) -> ErrorCode:
        """Return the error for a JoinGroup, or for an OffsetCommit without a generation."""
        return self.join if api_key == ApiKey.JOIN_GROUP else self.commit


def make_join_commit_errors(error: ErrorCode) -> TakeoverErrors:
    """Return this error for JoinGroup and for OffsetCommit."""
    return TakeoverErrors(error, error)


PASS: Final = make_join_commit_errors(ErrorCode.NONE)
_WAIT: Final = make_join_commit_errors(LOADING)
_LIVE: Final = TakeoverErrors(LOADING, ErrorCode.UNKNOWN_MEMBER_ID)
_STREAMS: Final = TakeoverErrors(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.UNKNOWN_MEMBER_ID)
_SHARE: Final = TakeoverErrors(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.GROUP_ID_NOT_FOUND)


def get_errors_for_adopt_result(result: AdoptResult) -> TakeoverErrors:
    """Return the errors for requests after this attempt to take their group over."""
    if result.outcome.may_be_served:
        return PASS
    state = result.state or ClusterGroupState.none()
    if state.is_share:
        return _SHARE
    if not state.is_live:
        return _WAIT
    return _STREAMS if state.kind == "streams" else _LIVE
