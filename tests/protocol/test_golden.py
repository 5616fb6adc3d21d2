# SPDX-License-Identifier: Apache-2.0
"""Messages as Kafka 4.3 reads and writes them (golden/): our codecs must see the same values in the same bytes."""

import json

import pytest

from tests.kafka.jars import require_kafka_classpath
from tests.protocol.golden.messages import Golden, ask_kafka, load
from tests.protocol.schemas import HOT_APIS, cases, to_hot, to_kafka_python

MESSAGES = load()


def test_every_hot_message_and_version_is_among_them() -> None:
    assert {golden.case for golden in MESSAGES} >= set(cases(HOT_APIS))


@pytest.mark.parametrize("golden", MESSAGES, ids=lambda golden: str(golden.case))
def test_our_codecs_see_what_kafka_sees(golden: Golden) -> None:
    case = golden.case
    if case.api in HOT_APIS:
        message = to_hot(case.cls.name, case.schema, golden.values, case.version)
    else:
        message = to_kafka_python(case.cls, case.schema, golden.values, case.version)

    assert case.decode(golden.body, 0) == message
    assert case.encode(message) == golden.body


@pytest.mark.kafka
def test_kafka_sees_in_them_what_the_golden_messages_say() -> None:
    answers = ask_kafka(require_kafka_classpath(), [(golden.case, golden.body) for golden in MESSAGES])

    for golden, (read, written) in zip(MESSAGES, answers, strict=True):
        assert json.loads(read) == golden.json, golden.case
        assert written == golden.body, golden.case
