# SPDX-License-Identifier: Apache-2.0
"""Files of the operating system, where it does less than it could."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from protocol.newtypes import Offset, Partition
from storage.disk.filesystem import Buffer, FileDescriptorCalls, RealFile, RealFileSystem, read_file
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.storage.strategies import batch

FS = RealFileSystem()


def test_writes_of_many_buffers_arrive_whole(tmp_path: Path) -> None:
    buffers = [bytes((n % 256,)) * (n % 7) for n in range(5000)]
    file = FS.open(tmp_path / "f", create=True)
    file.pwrite(buffers, 10)
    file.pwrite_durable(buffers, 10 + sum(map(len, buffers)))
    file.close()
    assert read_file(FS, tmp_path / "f") == bytes(10) + b"".join(buffers) * 2


class Short:
    """A system that does only a part of what it is asked."""

    RWF_DSYNC = getattr(os, "RWF_DSYNC", None)
    fdatasync = staticmethod(os.fdatasync)

    def pread(self, fd: int, length: int, offset: int, /) -> bytes:
        return os.pread(fd, min(length, 5), offset)

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int, flags: int = 0, /) -> int:
        return os.pwritev(fd, [b"".join(buffers)[:7]], offset, flags)


def test_short_writes_and_reads_are_continued(tmp_path: Path) -> None:
    file = RealFileSystem(Short()).open(tmp_path / "f", create=True)
    data = bytes(range(200))
    file.pwrite([data[:90], data[90:]], 3)
    assert file.pread(300, 3) == data
    assert file.pread(20, 3) == data[:20]
    file.close()


class Old:
    """A system that knows no durable writes, or says so only when it is asked for one (`code`)."""

    pread = staticmethod(os.pread)

    def __init__(self, code: int | None) -> None:
        self.calls: list[str] = []
        self._code = code
        if code is not None:
            self.RWF_DSYNC = 2

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int, flags: int = 0, /) -> int:
        self.calls.append("flagged" if flags else "plain")
        if flags and self._code is not None:
            raise OSError(self._code, os.strerror(self._code))
        return os.pwritev(fd, buffers, offset)

    def fdatasync(self, fd: int, /) -> None:
        self.calls.append("sync")
        os.fdatasync(fd)


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, None])
def test_without_the_durable_flag_a_sync_follows(tmp_path: Path, code: int | None) -> None:
    old = Old(code)
    file = RealFileSystem(old).open(tmp_path / "f", create=True)
    file.pwrite_durable([b"one"], 0)
    file.pwrite_durable([b"two"], 3)
    file.close()
    # Tried once, and then never again.
    assert old.calls == (["flagged"] if code is not None else []) + ["plain", "sync", "plain", "sync"]
    assert (tmp_path / "f").read_bytes() == b"onetwo"


def test_an_error_of_a_durable_write_is_no_missing_flag(tmp_path: Path) -> None:
    broken = Old(errno.EIO)
    file = RealFileSystem(broken).open(tmp_path / "f", create=True)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        file.pwrite_durable([b"one"], 0)
    assert broken.calls == ["flagged"]
    file.close()


@pytest.mark.parametrize("system", [os, Old(None)], ids=["supported", "not supported"])
def test_allocating_extends_with_zeros_and_never_shortens(
    tmp_path: Path, system: FileDescriptorCalls
) -> None:
    file = RealFileSystem(system).open(tmp_path / "f", create=True)
    file.pwrite([b"abc"], 0)
    file.allocate(1000)
    file.allocate(10)
    assert file.size() == 1000
    assert file.pread(2000, 0) == b"abc" + bytes(997)
    file.close()


def test_names(tmp_path: Path) -> None:
    assert FS.listdir(tmp_path / "missing") == []
    FS.remove(tmp_path / "missing")
    FS.rmdir(tmp_path / "missing")
    FS.mkdir(tmp_path / "a" / "b")
    FS.mkdir(tmp_path / "a" / "b")
    with pytest.raises(FileNotFoundError):
        FS.open(tmp_path / "missing")
    FS.open(tmp_path / "one", create=True).close()
    FS.open(tmp_path / "two", create=True).close()
    FS.rename(tmp_path / "one", tmp_path / "two")
    FS.fsync_dir(tmp_path)
    assert FS.listdir(tmp_path) == ["a", "two"]
    assert FS.exists(tmp_path / "two")
    FS.remove(tmp_path / "two")
    FS.rmdir(tmp_path / "a" / "b")
    assert FS.listdir(tmp_path / "a") == []


def test_files_are_their_owners_and_may_be_read_by_the_group(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        LogManager.open(tmp_path / "data", LogSettings(), RealFileSystem()).close()
        with_log = LogManager.open(tmp_path / "data", LogSettings(), RealFileSystem())
        with_log.append([Entry(Partition(0), Offset(0), batch(0, 0))], sync=True)
        with_log.checkpoint_journal()
        with_log.close()
    finally:
        os.umask(before)
    everything = [tmp_path / "data", *(tmp_path / "data").rglob("*")]
    assert len(everything) > 8
    for path in everything:
        assert path.stat().st_mode & 0o777 == (0o750 if path.is_dir() else 0o640), path


def test_a_close_that_fails_gives_the_descriptor_back_once(tmp_path: Path) -> None:
    file = FS.open(tmp_path / "f", create=True)
    assert isinstance(file, RealFile)
    os.close(file.fileno())
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.close()
    file.close()  # which must not close what has got the number since
