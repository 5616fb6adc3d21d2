# SPDX-License-Identifier: Apache-2.0
"""meta.properties: written once, kept, and compared."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.disk.filesystem import RealFileSystem, atomic_write
from storage.disk.properties import (
    WrongDirectory,
    decode_uuid,
    encode_uuid,
    load_or_create_meta,
    parse_properties,
    random_id,
)
from storage.errors import CorruptLog, StorageError
from tests.storage.faulty import Crash, Fault, FaultyFileSystem

ROOT = Path("/data")


@given(st.binary(min_size=16, max_size=16))
def test_ids_read_back(value: bytes) -> None:
    assert len(encode_uuid(value)) == 22
    assert decode_uuid(encode_uuid(value)) == value


def test_random_ids_look_like_kafkas() -> None:
    ids = {random_id(RealFileSystem()) for _ in range(200)}
    assert len(ids) == 200
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", one) for one in ids)


def test_a_new_directory_gets_an_identity_and_keeps_it(tmp_path: Path) -> None:
    data_dir = tmp_path / "new" / "data"
    meta = load_or_create_meta(RealFileSystem(), data_dir, node_id=3)
    assert load_or_create_meta(RealFileSystem(), data_dir, node_id=3) == meta
    assert load_or_create_meta(RealFileSystem(), data_dir, node_id=3, cluster_id=meta.cluster_id) == meta
    assert parse_properties((data_dir / "meta.properties").read_text()) == {
        "version": "1",
        "cluster.id": meta.cluster_id,
        "node.id": "3",
        "directory.id": meta.directory_id,
    }
    assert sorted(path.name for path in data_dir.iterdir()) == ["meta.properties"]


def test_a_directory_of_another_node_or_cluster_is_refused(tmp_path: Path) -> None:
    load_or_create_meta(RealFileSystem(), tmp_path, node_id=3, cluster_id="one")
    with pytest.raises(WrongDirectory, match="belongs to node 3, and this is node 4"):
        load_or_create_meta(RealFileSystem(), tmp_path, node_id=4)
    with pytest.raises(WrongDirectory, match="belongs to cluster one, and this is two"):
        load_or_create_meta(RealFileSystem(), tmp_path, node_id=3, cluster_id="two")


def test_a_file_as_a_broker_writes_it_is_read(tmp_path: Path) -> None:
    text = (
        "#\n#Tue Nov 14 22:13:20 UTC 2023\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n"
        "directory.id=ulX2vN4AmYo3J1tQ4vV4MA\nnode.id=1\nversion=1\n"
    )
    (tmp_path / "meta.properties").write_text(text)
    meta = load_or_create_meta(RealFileSystem(), tmp_path, node_id=1)
    assert (meta.cluster_id, meta.node_id) == ("MkU3OEVBNTcwNTJENDM2Qg", 1)
    assert (tmp_path / "meta.properties").read_text() == text
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=a\\:b\n")
    assert load_or_create_meta(RealFileSystem(), tmp_path, node_id=1).cluster_id == "a:b"


@pytest.mark.parametrize("text", ["", "cluster.id=x\n", "node.id=1\n", "cluster.id=x\nnode.id=one\n"])
def test_a_file_without_an_identity_is_reported_and_kept(tmp_path: Path, text: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(CorruptLog):
        load_or_create_meta(RealFileSystem(), tmp_path, node_id=1)
    assert (tmp_path / "meta.properties").read_text() == text


def test_a_disk_that_fails_is_a_storage_error() -> None:
    fs = FaultyFileSystem(ROOT)
    fs.fail(Fault.FULL)
    with pytest.raises(StorageError):
        load_or_create_meta(fs, ROOT, node_id=1)


def test_an_atomic_write_leaves_the_old_content_or_the_new() -> None:
    path = ROOT / "file"
    seen = set()
    for after in range(7):
        for power_loss in (False, True):
            for fault in Fault:
                fs = FaultyFileSystem(ROOT)
                atomic_write(fs, path, b"old")
                fs.fail(fault, after)
                done = False
                try:
                    atomic_write(fs, path, b"the new content")
                    done = True
                except (OSError, Crash):
                    pass
                fs.restart(power_loss=power_loss)
                content = bytes(fs.inode(path).data)
                assert content in ((b"the new content",) if done else (b"old", b"the new content"))
                seen.add((done, content))
    assert len(seen) == 3
