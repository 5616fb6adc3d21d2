# SPDX-License-Identifier: Apache-2.0
"""Real clients through a gateway to a real Kafka: every record once, over many refreshes, and no way round it."""

from collections.abc import Iterator

import pytest

from tests.gateway.applications import LIBRARIES, QUICK, Applications
from tests.gateway.whole import Whole
from tests.support.raw import fetch_offsets

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(300)]

RECORDS = 60
"""Between them each client asks for the metadata 28 times."""


@pytest.fixture(scope="module", params=["alone", "transactions"])
def ended(
    request: pytest.FixtureRequest, whole: Whole, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Applications]:
    """All clients have produced and read side by side, with transactions or without, and have ended."""
    work = tmp_path_factory.mktemp(request.param)
    with_transactions = request.param == "transactions"
    applications = Applications(whole, work, request.param, QUICK, transactions=with_transactions)
    try:
        applications.all_reach("many records", lambda library: len(applications.values(library)) >= RECORDS)
        applications.read_all_and_end()
        yield applications
    finally:
        applications.close()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_client_reads_each_record_once_and_knows_no_way_round_the_gateway(
    ended: Applications, whole: Whole, library: str
) -> None:
    application = ended.require(library)
    assert application.produced is not None
    assert application.produced >= RECORDS
    assert sorted(application.values) == list(range(application.produced)), "nothing twice, nothing aborted"
    assert application.seen_ports >= {whole.broker_port(1), whole.port}, "a broker, and our node"


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_was_read_is_committed_here(ended: Applications, whole: Whole, library: str) -> None:
    application = ended.require(library)
    committed = fetch_offsets(whole.bootstrap, application.topic)
    ends = whole.cluster.ends(application.topic)
    behind = {part: ends[part] - committed.get((application.topic, part), 0) for part in ends}
    # Behind the last record of a transaction there is its marker, which not every client counts as read.
    assert set(behind.values()) <= ({0, 1} if "transactions" in application.topic else {0}), behind
    listed = whole.cluster.admin().list_consumer_groups().result(120)
    assert application.topic not in {group.group_id for group in listed.valid}, "not at the cluster"
