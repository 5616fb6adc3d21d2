# SPDX-License-Identifier: Apache-2.0
"""The log on a disk that fails at any moment: what was promised is there, in order, and only once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.storage.every_fault import EVERY_FAULT
from tests.storage.faulty import Crash, Fault
from tests.storage.machine import Machine


def scenario(machine: Machine, *, sync: bool) -> None:
    """A short life with everything in it; whatever fails is repaired, as a coordinator does."""
    for turn in range(7):
        machine.append([0, turn % 3], sync=sync) if turn % 3 else machine.append([0], sync=sync, count=4)
        if turn == 2:
            machine.attempt("write_behind", 1)
        if turn in (3, 5):
            machine.attempt("checkpoint_journal")
        if turn == 4 and not sync:
            machine.attempt("sync")
        if machine.manager.append_failure is not None and not machine.attempt("recover_all_after_failure"):
            machine.attempt("recover_all_after_failure")
        if turn == 5:
            machine.read()
    machine.close()
    machine.append([0, 1], sync=sync)


def operations(*, sync: bool) -> int:
    """How many operations of the scenario can fail."""
    machine = Machine()
    machine.fs.operations = 0
    scenario(machine, sync=sync)
    return machine.fs.operations


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("fault", EVERY_FAULT)
def test_any_one_operation_may_fail(fault: Fault, sync: bool) -> None:
    for operation in range(operations(sync=sync)):
        for power_loss in (False, True):
            machine = Machine(operation)
            machine.fs.fail(fault, operation)
            try:
                scenario(machine, sync=sync)
            except Crash:
                assert fault is Fault.CRASH
            machine.reopen(power_loss=power_loss)
            # And it goes on.
            machine.append([0, 1, 2], sync=True)
            machine.reopen(power_loss=True)
            assert machine.close()


KINDS = ["pwrite", "pwrite_durable", "fsync", "fdatasync", "fsync_dir", "rename", "create", "truncate"]
steps = st.one_of(
    st.tuples(
        st.just("append"),
        st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True),
        st.booleans(),
        st.sampled_from([1, 1, 3, 20]),
    ),
    st.tuples(st.just("write_behind"), st.integers(1, 500)),
    st.tuples(st.sampled_from(["checkpoint_journal", "sync", "read", "recover_all_after_failure", "close"])),
    st.tuples(st.just("fail"), st.sampled_from(list(Fault)), st.integers(0, 30), st.none()),
    st.tuples(st.just("fail"), st.sampled_from(list(Fault)), st.integers(0, 4), st.sampled_from(KINDS)),
    st.tuples(st.just("crash"), st.booleans()),
)


@given(st.integers(0, 1 << 32), st.lists(steps, max_size=60))
def test_any_life_with_any_faults(seed: int, life: list[tuple[object, ...]]) -> None:
    machine = Machine(seed)
    for name, *arguments in life:
        try:
            take(machine, str(name), arguments)
        except Crash:
            machine.open_despite_faults(power_loss=machine.fs.rng.random() < 0.5)
    machine.open_despite_faults(power_loss=True)
    assert machine.close()


def take(machine: Machine, name: str, arguments: list[object]) -> None:
    """One step of a life."""
    match name, arguments:
        case "append", [list(partitions), bool(sync), int(count)]:
            machine.append(partitions, sync=sync, count=count)
        case "write_behind", [int(size)]:
            machine.attempt("write_behind", size)
        case "fail", [Fault() as fault, int(after), None | str() as only]:
            machine.fs.fail(fault, after, only=only)
        case "crash", [bool(power_loss)]:
            machine.open_despite_faults(power_loss=power_loss)
        case "read", []:
            machine.read()
        case "close", []:
            machine.close()
        case "recover_all_after_failure", [] if machine.manager.append_failure is None:
            pass
        case step, []:
            machine.attempt(step)
        case _:
            raise AssertionError(name)
