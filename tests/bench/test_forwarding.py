# SPDX-License-Identifier: Apache-2.0
"""What passes through a gateway is measured, beside haproxy and a direct connection."""

import re
import shutil

import pytest

from bench import cli
from bench.kafka import KafkaUnavailable, kafka_classpath
from tests.support.missing import skip_or_fail


@pytest.mark.kafka
@pytest.mark.slow
def test_all_ways_carry_bytes_and_requests(capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("haproxy") is None:
        skip_or_fail("haproxy is not installed")
    try:
        kafka_classpath()
    except KafkaUnavailable as error:
        skip_or_fail(str(error))
    assert cli.main(["forwarding", "--seconds", "0.3", "--runs", "1", "--requests", "20"]) == 0
    shown = capsys.readouterr().out
    for way in ("directly", "haproxy", "Groupkeeper"):
        streamed, asked = re.findall(rf"^\| {way} \| ([\d,.]+) \|", shown, re.MULTILINE)
        assert float(streamed.replace(",", "")) > 0, shown
        assert float(asked) > 0, shown
    assert re.search(r"^\| haproxy \|.*\| 1\.00 \|$", shown, re.MULTILINE), shown
