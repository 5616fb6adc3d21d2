# SPDX-License-Identifier: Apache-2.0
"""FindCoordinator: one key and several, empty keys, unknown types of keys."""

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.script import Script

FIND = ApiKey.FIND_COORDINATOR


@scenario(version=every(FIND, until=3))
def one_key(s: Script, version: int) -> None:
    a = s.connect()
    for key in (s.group, "", "grüße", "x" * 1_000):
        a.ask(FIND, version, key=key)


@scenario(version=every(FIND, since=4))
def several_keys(s: Script, version: int) -> None:
    a = s.connect()
    a.ask(FIND, version)
    a.ask(FIND, version, coordinator_keys=[s.group, "", s.id("h"), s.group, "grüße"])
    a.ask(FIND, version, coordinator_keys=[])


@scenario(version=every(FIND, since=1), key_type=[-128, -1, 3, 4, 127])
def unknown_types_of_keys(s: Script, version: int, key_type: int) -> None:
    a = s.connect()
    a.ask(FIND, version, key_type=key_type)
    if version >= 4:
        a.ask(FIND, version, key_type=key_type, coordinator_keys=[s.group, "", s.group])
        a.ask(FIND, version, key_type=key_type, coordinator_keys=[])


@scenario(version=every(FIND, since=1, until=5))
def share_groups_before_their_version(s: Script, version: int) -> None:
    a = s.connect()
    a.ask(FIND, version, key_type=2)


@scenario(
    key={
        "one part": "g",
        "empty": "",
        "two parts": "g:t",
        "four parts": "g:AAAAAAAAAAAAAAAAAAAAAA:0:1",
        "no uuid": "g:!:0",
        "no number": "g:AAAAAAAAAAAAAAAAAAAAAA:x",
    }
)
def bad_keys_of_share_groups(s: Script, key: str) -> None:
    a = s.connect()
    a.ask(FIND, key_type=2, coordinator_keys=[key])


@scenario(differs="no-share-groups")
def share_groups(s: Script) -> None:
    a = s.connect()
    a.ask(FIND, key_type=2, coordinator_keys=["g:AAAAAAAAAAAAAAAAAAAAAQ:0"])


@scenario(differs="no-transactions", version=every(FIND, since=1))
def transactions(s: Script, version: int) -> None:
    a = s.connect()
    a.ask(FIND, version, key_type=1)
