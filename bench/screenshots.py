# SPDX-License-Identifier: Apache-2.0
"""`python -m bench screenshots DIR`: pictures of the page for browsers, of nodes with 3, 300 and 100,000 groups."""

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple

import confluent_kafka as ck
from playwright.sync_api import Browser

from bench.browser import LIMIT_MS, find_chromium, launch
from bench.cluster import Cluster, Unprepared
from bench.servers import Groupkeeper, NotStarted
from bench.stocked import END, PARTITIONS, SETTINGS, TOPIC, stock

TIMEOUT_S: Final = 1_800.0
GROUP: Final = "billing"
MEMBERS: Final = 3
FEW, SHORT, TALL, PHONE = (1_200, 420), (1_200, 720), (1_200, 1_080), (390, 844)


class Picture(NamedTuple):
    """One picture: its file, the address, the size of the window, and the colours."""

    name: str
    path: str
    size: tuple[int, int]
    scheme: Literal["dark", "light"] = "light"


PICTURES: Final = {
    3: (
        Picture("page-3-groups", "/", FEW),
        Picture("page-one-group", f"/group?group={GROUP}", TALL),
        Picture("page-one-group-phone", f"/group?group={GROUP}", PHONE, "dark"),
        Picture("page-nodes", "/nodes", SHORT),
    ),
    300: (Picture("page-300-groups", "/?sort=lag&order=desc&limit=25", TALL, "dark"),),
    100_000: (Picture("page-100000-groups", "/?search=fraud&limit=25", SHORT),),
}


def take(browser: Browser, node: Groupkeeper, picture: Picture, folder: Path) -> Path:
    """Take a picture, and return its file."""
    width, height = picture.size
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=picture.scheme, timezone_id="UTC"
    )
    context.set_default_timeout(LIMIT_MS)
    tab = context.new_page()
    tab.goto(f"http://{node.metrics}{picture.path}")
    tab.wait_for_selector("main[aria-busy=false]")
    notices = tab.locator(".notice:visible")
    if notices.count():
        raise Unprepared(f"{picture.path} shows a notice: {notices.first.inner_text()}")
    file = folder / f"{picture.name}.png"
    tab.screenshot(path=file)
    context.close()
    return file


@contextmanager
def members(node: Groupkeeper) -> Iterator[None]:
    """Consumers of one group, with offsets that are a little behind."""
    chosen = {"bootstrap.servers": str(node.address), "group.id": GROUP}
    consumers = [ck.Consumer({**chosen, "client.id": f"{GROUP}-{number}"}) for number in range(MEMBERS)]
    for consumer in consumers:
        consumer.subscribe([TOPIC])
    began = time.monotonic()
    while not all(len(consumer.assignment()) == PARTITIONS // MEMBERS for consumer in consumers):
        if time.monotonic() - began > LIMIT_MS / 1_000:
            raise Unprepared(f"the members of {GROUP} have no assignment")
        for consumer in consumers:
            consumer.poll(0.05)
    for consumer in consumers:
        places = [
            ck.TopicPartition(TOPIC, each.partition, END - 37 * each.partition)
            for each in consumer.assignment()
        ]
        consumer.commit(offsets=places, asynchronous=False)
    yield
    for consumer in consumers:
        consumer.close()


def main(arguments: Sequence[str]) -> int:
    """The command line; returns the exit status. Raises NotStarted and Unprepared."""
    parser = argparse.ArgumentParser(prog="python -m bench screenshots", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the pictures go")
    parser.add_argument(
        "--groups", type=int, nargs="*", choices=list(PICTURES), default=list(PICTURES), help="(all)"
    )
    options = parser.parse_args(arguments)
    binary = find_chromium()
    if binary is None:
        raise NotStarted("there is no Chromium to take pictures with")
    for groups in options.groups:
        with ExitStack() as stack:
            node = stack.enter_context(
                Groupkeeper("groupkeeper", Path(tempfile.mkdtemp(prefix="bench-")), SETTINGS)
            )
            node.start()
            with Cluster(node.address, timeout_s=TIMEOUT_S) as cluster:
                stock(cluster, groups)
            stack.enter_context(members(node))
            browser = stack.enter_context(launch(binary))
            for picture in PICTURES[groups]:
                print(take(browser, node, picture, options.folder))
    return 0
