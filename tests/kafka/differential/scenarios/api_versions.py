# SPDX-License-Identifier: Apache-2.0
"""ApiVersions: the ranges of what is served, unsupported versions, and the software that asks."""

from typing import Any, Final

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.script import Script
from tests.support.apis import SUPPORTED

VERSIONS = ApiKey.API_VERSIONS
NODE_ID: Final = 1
"""Of both servers."""


@scenario(version=every(VERSIONS))
def the_ranges_of_what_we_serve(s: Script, version: int) -> None:
    a = s.connect()
    with s.quietly():
        answer = a.ask(VERSIONS, version)
    assert answer.error_code == 0
    keys = [api.api_key for api in answer.api_keys]
    s.note(f"in the order of their keys: {keys == sorted(keys)}")
    for api in answer.api_keys:
        if api.api_key in SUPPORTED:
            s.note(f"{ApiKey(api.api_key).name}: {api.min_version} to {api.max_version}")


@scenario(differs="apis-and-features", version=every(VERSIONS))
def everything_that_is_told(s: Script, version: int) -> None:
    s.connect().ask(VERSIONS, version)


@scenario(version=[6, 7, 99, 32_767])
def later_versions(s: Script, version: int) -> None:
    a = s.connect()
    a.send_body(VERSIONS, version, b"", {}, header_tags=b"\0").reply()
    s.note("the connection goes on")
    a.heartbeat(group_id="")
    a.send_body(VERSIONS, version, b"whatever the body is", {"body": "not read"}, header_tags=b"\0").reply()


@scenario(version=[-1, -32_768])
def negative_versions(s: Script, version: int) -> None:
    a = s.connect()
    a.send_body(VERSIONS, version, b"", {}).reply()
    a.heartbeat(group_id="")


@scenario()
def a_later_version_whose_header_has_no_tags(s: Script) -> None:
    a = s.connect()
    a.send_body(VERSIONS, 99, b"", {"header": "without its tag byte"}).reply()


@scenario(
    version=every(VERSIONS, since=3),
    software={
        "short": ("a", "1"),
        "usual": ("apache-kafka-java", "4.4.0"),
        "dots and dashes": ("a.b-c", "1.0-rc.1"),
        "digits first": ("1a", "1"),
    },
)
def good_software(s: Script, version: int, software: tuple[str, str]) -> None:
    a = s.connect()
    with s.quietly():
        answer = a.ask(
            VERSIONS, version, client_software_name=software[0], client_software_version=software[1]
        )
    s.note(f"error {answer.error_code}")


@scenario(
    version=every(VERSIONS, since=3),
    software={
        "no name": ("", "1"),
        "no version": ("a", ""),
        "underscore": ("a_b", "1"),
        "blank": ("a b", "1"),
        "dash at the end": ("a-", "1"),
        "dash at the start": ("-a", "1"),
        "dot at the end": ("a", "1."),
        "slash": ("a", "1/2"),
        "accents": ("ü", "1"),
        "line": ("a\n", "1"),
        "line in the version": ("a", "1\n"),
    },
)
def bad_software(s: Script, version: int, software: tuple[str, str]) -> None:
    a = s.connect()
    a.ask(VERSIONS, version, client_software_name=software[0], client_software_version=software[1])
    a.heartbeat(group_id="")


@scenario(
    cluster={"right": "right", "wrong": "wrong", "empty": "", "none": None},
    node={"right": NODE_ID, "wrong": NODE_ID + 1, "negative": -2, "none": -1},
)
def who_is_meant(s: Script, cluster: str | None, node: int) -> None:
    a = s.connect()
    with s.quietly():
        right = a.ask(ApiKey.DESCRIBE_CLUSTER).cluster_id
        answer = a.ask(VERSIONS, cluster_id=right if cluster == "right" else cluster, node_id=node)
    s.note(f"error {answer.error_code}, tells apis: {bool(answer.api_keys)}")
    a.heartbeat(group_id="")


@scenario(
    meant={
        "nobody": {},
        "another": {"cluster_id": "wrong", "node_id": 9},
        "half": {"cluster_id": ""},
        "a negative node": {"node_id": -2},
    },
)
def bad_software_of_who_means(s: Script, meant: dict[str, Any]) -> None:
    s.connect().ask(VERSIONS, client_software_name="a_b", **meant)
