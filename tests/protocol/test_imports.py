# SPDX-License-Identifier: Apache-2.0
"""kafka-python takes long to import: a server that starts must not need it."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    "module", ["protocol", "protocol.hot", "protocol.message_codecs", "protocol.headers"]
)
def test_importing_the_hot_part_does_not_import_kafka_python(module: str) -> None:
    program = f"import sys, {module}; sys.exit(any(name.split('.')[0] == 'kafka' for name in sys.modules))"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_first_message_that_is_not_hot_imports_kafka_python() -> None:
    program = (
        "import sys; from protocol.message_codecs import find_message_codec; "
        "find_message_codec(3, 9); sys.exit('kafka' not in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("module", ["coordinator.single_node", "coordinator.workers.worker"])
def test_a_node_listens_before_the_slow_imports(module: str) -> None:
    """What `App.start` needs up to its socket; the apis, /metrics and all that these need are imported behind it."""
    program = f"import sys, {module}; sys.exit(any(name in sys.modules for name in ('kafka', 'aiohttp')))"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("module", ["coordinator.app", "coordinator.workers.serve", "coordinator.cli.serve"])
def test_a_node_of_its_own_needs_no_aiokafka(module: str) -> None:
    """Only what stands before a real cluster has connections to one."""
    program = f"import sys, {module}; sys.exit(any(name.split('.')[0] == 'aiokafka' for name in sys.modules))"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_protocol_does_no_io_and_needs_nothing_of_ours() -> None:
    program = """
import sys, protocol.message_codecs, protocol.framing, protocol.headers, protocol.consumer_protocol
sys.exit(any(name.split('.')[0] in {'asyncio', 'storage', 'coordinator'} for name in sys.modules))
"""

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
