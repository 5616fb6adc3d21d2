# SPDX-License-Identifier: Apache-2.0
"""The page for people in a real browser: what it shows, how it is used, and what a screen reader gets."""

import re
from collections.abc import Iterator
from typing import Final

import confluent_kafka as ck
import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.support.browser import Scheme, accessibility_violations, chromium, open_tab
from tests.support.raw import RawConnection, alter_configs, commit_offsets, create_topic, standalone_commit
from tests.support.service import Service, serving
from tests.support.waiting import wait_until

pytestmark = pytest.mark.gate

GROUPS: Final = 60
HOSTILE: Final = '<img src=x onerror="window.attacked=1">'
PATHS: Final = ("/", "/group?group=billing", "/nodes")
PHONE: Final = 360


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A node with many groups: one has two members, others lag behind declared ends, and one has a hostile name."""
    with serving(tmp_path_factory.mktemp("page")) as service:
        create_topic(service.bootstrap, "orders", 4)
        alter_configs(service.bootstrap, "orders", {"groupkeeper.end.group": "orders-made"})
        commit_offsets(service.bootstrap, "orders-made", "orders", dict.fromkeys(range(4), 1000))
        with RawConnection(service.bootstrap) as connection:
            for number in range(GROUPS):
                group = f"simple-{number:02}"
                connection.send(standalone_commit(group, "orders", {0: number}, metadata="by hand"), 9)
            for group in (HOSTILE, ""):
                connection.send(standalone_commit(group, "orders", {0: 5}, metadata=HOSTILE), 8)
            for _ in range(GROUPS + 2):
                connection.receive()
        consumers = [join(service, f"billing-{number}") for number in range(2)]
        wait_until(
            lambda: [consumer.poll(0.05) for consumer in consumers] and assigned(consumers) == 4,
            what="two members with all partitions",
        )
        for consumer in consumers:
            places = [ck.TopicPartition("orders", each.partition, 400) for each in consumer.assignment()]
            consumer.commit(offsets=places, asynchronous=False)
        yield service
        for consumer in consumers:
            consumer.close()


def join(service: Service, client_id: str) -> ck.Consumer:
    consumer = ck.Consumer(
        {"bootstrap.servers": service.bootstrap, "group.id": "billing", "client.id": client_id}
    )
    consumer.subscribe(["orders"])
    return consumer


def assigned(consumers: list[ck.Consumer]) -> int:
    found = [len(consumer.assignment()) for consumer in consumers]
    return sum(found) if all(found) else 0


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    with open_tab(browser) as tab:
        yield tab


def show(tab: Page, service: Service, path: str) -> None:
    """Open an address of the node, and wait for what it shows."""
    tab.goto(f"http://127.0.0.1:{service.metrics_port}{path}")
    expect(tab.locator("main")).to_have_attribute("aria-busy", "false")


def rows(tab: Page, table: str) -> Locator:
    """The rows of a table, without its head."""
    return tab.get_by_role("table", name=table).locator("tbody").get_by_role("row")


def first_column(tab: Page, table: str) -> list[str]:
    return rows(tab, table).get_by_role("rowheader").all_inner_texts()


# --- the list of groups ---


def test_groups_are_listed_with_their_state_members_and_lag(node: Service, tab: Page) -> None:
    show(tab, node, "/")
    expect(tab).to_have_title("Groups - Groupkeeper")
    expect(tab.get_by_text(f"{GROUPS + 4} groups")).to_be_visible()
    tab.get_by_label("Group id contains").fill("billing")
    expect(rows(tab, "Groups")).to_have_count(1)
    expect(tab.locator("main")).to_match_aria_snapshot("""
      - main:
        - heading "Groups" [level=1]
        - search:
          - searchbox "Group id contains": billing
          - combobox "State"
          - combobox "Groups per page"
        - status: 1 of 64 groups
        - region "Groups":
          - table "Groups":
            - rowgroup:
              - row:
                - columnheader "Group":
                  - button "Group"
                - columnheader "State"
                - columnheader "Members"
                - columnheader "Lag"
                - columnheader "Offsets"
                - columnheader "Rebalances"
                - columnheader "Node"
            - rowgroup:
              - row:
                - rowheader "billing":
                  - link "billing"
                - cell "Stable"
                - cell "2"
                - cell "2,400"
                - cell "4"
                - cell
                - cell "1"
    """)


def test_a_search_and_a_state_stay_in_the_address(node: Service, tab: Page) -> None:
    show(tab, node, "/")
    tab.get_by_label("Group id contains").fill("IL")
    tab.get_by_label("State").select_option("Stable")
    expect(rows(tab, "Groups")).to_have_count(1)
    expect(tab).to_have_url(re.compile(r"/\?search=IL&state=Stable$"))
    tab.reload()
    expect(rows(tab, "Groups")).to_have_count(1)
    expect(tab.get_by_label("Group id contains")).to_have_value("IL")
    expect(tab.get_by_label("State")).to_have_value("Stable")
    tab.get_by_label("Group id contains").fill("nothing like it")
    expect(tab.get_by_text("No group matches")).to_be_visible()


def test_the_list_is_sorted_by_its_heads_with_the_keyboard_too(node: Service, tab: Page) -> None:
    show(tab, node, "/")
    lag = tab.get_by_role("columnheader", name="Lag")
    lag.get_by_role("button").click()
    expect(lag).to_have_attribute("aria-sort", "descending")
    expect(rows(tab, "Groups").first).to_contain_text("billing")
    lag.get_by_role("button").press("Enter")
    expect(lag).to_have_attribute("aria-sort", "ascending")
    expect(rows(tab, "Groups").first).to_contain_text("orders-made")
    expect(lag.get_by_role("button")).to_be_focused()
    expect(tab.get_by_role("columnheader", name="Group")).not_to_have_attribute("aria-sort", re.compile(""))


def press_twice(button: Locator) -> None:
    """Press a button for the second time before there can be an answer to the first."""
    button.evaluate("button => { button.click(); button.click(); }")


def test_pages_follow_each_other_and_the_way_back_leads_to_the_same_page(node: Service, tab: Page) -> None:
    show(tab, node, "/?limit=25&search=simple&utm_source=mail&state=unknown")
    pages = tab.get_by_role("navigation", name="Pages of groups")
    expect(pages.get_by_role("button", name="Previous page")).to_be_disabled()
    expect(rows(tab, "Groups").first).to_contain_text("simple-00")
    press_twice(pages.get_by_role("button", name="Next page"))
    expect(rows(tab, "Groups").first).to_contain_text("simple-25")
    pages.get_by_role("button", name="Previous page").click()
    expect(rows(tab, "Groups").first).to_contain_text("simple-00")
    pages.get_by_role("button", name="Next page").click()
    expect(rows(tab, "Groups").first).to_contain_text("simple-25")
    press_twice(pages.get_by_role("button", name="Previous page"))
    expect(rows(tab, "Groups").first).to_contain_text("simple-00")
    pages.get_by_role("button", name="Next page").click()
    expect(rows(tab, "Groups").first).to_contain_text("simple-25")
    pages.get_by_role("button", name="Next page").click()
    expect(rows(tab, "Groups")).to_have_count(10)
    expect(pages.get_by_role("button", name="Next page")).to_be_disabled()
    tab.get_by_role("link", name="simple-57").click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("simple-57")
    tab.go_back()
    expect(rows(tab, "Groups").first).to_contain_text("simple-50")
    pages.get_by_role("button", name="Previous page").click()
    expect(rows(tab, "Groups").first).to_contain_text("simple-25")


def test_a_page_that_cannot_be_had_leaves_the_one_before(node: Service, tab: Page) -> None:
    show(tab, node, "/?limit=25&search=simple")
    pages = tab.get_by_role("navigation", name="Pages of groups")
    tab.route("**/api/v1/groups*", lambda route: route.abort())
    pages.get_by_role("button", name="Next page").click()
    expect(tab.get_by_role("status").first).to_contain_text("the node does not answer")
    expect(pages.get_by_role("button", name="Next page")).to_be_enabled()
    expect(pages.get_by_role("button", name="Previous page")).to_be_disabled()
    tab.unroute_all()
    pages.get_by_role("button", name="Next page").click()
    expect(rows(tab, "Groups").first).to_contain_text("simple-25")
    expect(tab.get_by_role("status").first).to_be_empty()


def test_the_group_with_the_empty_id_is_shown(node: Service, tab: Page) -> None:
    show(tab, node, "/")
    tab.get_by_role("link", name="(empty id)").click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("(empty id)")
    expect(rows(tab, "Committed offsets")).to_have_count(1)


# --- one group ---


def test_a_group_is_shown_with_members_assignments_offsets_and_rebalances(node: Service, tab: Page) -> None:
    show(tab, node, "/group?group=billing")
    expect(tab).to_have_title("billing - Groupkeeper")
    facts = dict(
        zip(
            tab.get_by_role("term").all_inner_texts(),
            tab.get_by_role("definition").all_inner_texts(),
            strict=True,
        )
    )
    assert facts | {"Leader": "", "Generation": "", "Partition": ""} == {
        "State": "Stable",
        "Lag": "2,400",
        "Members": "2",
        "Committed offsets": "4",
        "Protocol": "consumer, range",
        "Generation": "",
        "Leader": "",
        "Node": "1",
        "Partition": "",
    }
    members = first_column(tab, "Members")
    assert [member.partition("-")[0] for member in members] == ["billing", "billing"]
    assert facts["Leader"] in members
    tab.get_by_text("2 partitions").first.click()
    expect(rows(tab, "Members").first).to_contain_text("orders: 0\u20131")
    offsets = rows(tab, "Committed offsets").all_inner_texts()
    assert [row.split("\t")[:5] for row in offsets] == [
        ["orders", str(number), "400", "1,000", "600"] for number in range(4)
    ]
    expect(rows(tab, "Last rebalances").first).to_contain_text("member joined")


def test_a_group_that_does_not_exist_is_said_to_be_missing(node: Service, tab: Page) -> None:
    show(tab, node, "/group?group=none")
    expect(tab.get_by_role("status").first).to_have_text("Nothing can be shown: there is no such group.")
    expect(tab.get_by_role("table")).to_have_count(0)


def test_names_and_metadata_are_text(node: Service, tab: Page) -> None:
    show(tab, node, "/?search=onerror")
    tab.get_by_role("link", name=HOSTILE).click()
    expect(tab.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    expect(rows(tab, "Committed offsets").get_by_role("cell", name=HOSTILE)).to_be_visible()
    expect(tab.locator("img")).to_have_count(0)
    assert tab.evaluate("window.attacked") is None


def test_a_refresh_keeps_what_the_user_has_opened(node: Service, tab: Page) -> None:
    tab.clock.install()
    show(tab, node, "/group?group=simple-01")
    expect(rows(tab, "Committed offsets")).to_have_count(1)
    commit_offsets(node.bootstrap, "simple-01", "orders", {1: 7})
    tab.clock.run_for(10_000)
    expect(rows(tab, "Committed offsets")).to_have_count(2)


def test_a_row_that_changes_keeps_the_focus_and_stays_open(node: Service, tab: Page) -> None:
    tab.clock.install()
    show(tab, node, "/group?group=billing")
    opened = rows(tab, "Members").last
    opened.get_by_text("2 partitions").press("Enter")
    expect(opened.get_by_role("listitem")).to_be_visible()

    def change(route: Route) -> None:
        """Answer as the node does, but as if the group waited for all members, the first of which is gone."""
        page = route.fetch().json()
        page["members"] = [{**member, "awaited": True} for member in page["members"][1:]]
        route.fulfill(json=page)

    tab.route("**/api/v1/group/members*", change)
    tab.clock.run_for(10_000)
    expect(rows(tab, "Members")).to_have_count(1)
    expect(opened).to_contain_text("awaited")
    expect(opened.get_by_role("listitem")).to_be_visible()
    expect(opened.locator("summary")).to_be_focused()


def test_nothing_is_asked_while_refreshing_is_off(node: Service, tab: Page) -> None:
    tab.clock.install()
    show(tab, node, "/")
    tab.get_by_label("Refresh every 10 s").uncheck()
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.clock.run_for(60_000)
    assert asked == []


# --- nodes ---


def test_nodes_are_shown_with_their_logs_and_partitions(node: Service, tab: Page) -> None:
    show(tab, node, "/nodes")
    (cells,) = [row.split("\t") for row in rows(tab, "Nodes and their logs").all_inner_texts()]
    assert cells[:5] == ["1", "ready", str(GROUPS + 4), "50", "0"]
    assert re.fullmatch(r"[0-9.]+ [KMGT]iB", cells[5])
    assert first_column(tab, "Partitions of __consumer_offsets") == [str(number) for number in range(50)]
    expect(tab.get_by_role("heading", name="Brokers of the Kafka cluster")).to_have_count(0)


# --- for everyone ---


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("width", "scheme"), [(1_280, "light"), (1_280, "dark"), (PHONE, "light")])
def test_a_page_can_be_used_by_everyone(
    node: Service, browser: Browser, path: str, width: int, scheme: Scheme
) -> None:
    with open_tab(browser, width=width, scheme=scheme) as tab:
        show(tab, node, path)
        assert accessibility_violations(tab) == ""
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_the_keyboard_reaches_the_content_first(node: Service, tab: Page) -> None:
    show(tab, node, "/")
    tab.keyboard.press("Tab")
    expect(tab.get_by_role("link", name="Skip to the content")).to_be_focused()
    tab.keyboard.press("Enter")
    expect(tab.locator("main")).to_be_focused()
    tab.keyboard.press("Tab")
    expect(tab.get_by_label("Group id contains")).to_be_focused()


def test_the_pages_are_named_and_the_current_one_is_marked(node: Service, tab: Page) -> None:
    for path, name in (("/", "Groups"), ("/nodes", "Nodes")):
        show(tab, node, path)
        pages = tab.get_by_role("navigation", name="Pages", exact=True)
        assert pages.get_by_role("link").all_inner_texts() == ["Groups", "Nodes"]
        expect(pages.locator("[aria-current=page]")).to_have_text(name)


def test_a_page_asks_nobody_but_its_node(node: Service, tab: Page) -> None:
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    for path in PATHS:
        show(tab, node, path)
    assert len(asked) > 3 * len(PATHS)
    assert {url.split("/")[2] for url in asked} == {f"127.0.0.1:{node.metrics_port}"}


def test_a_node_that_is_gone_is_said_to_be_gone_and_the_last_answer_stays(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with serving(tmp_path_factory.mktemp("gone")) as service, open_tab(browser) as tab:
        create_topic(service.bootstrap, "t", 1)
        commit_offsets(service.bootstrap, "last-seen", "t", {0: 1})
        tab.clock.install()
        show(tab, service, "/")
        service.kill9()
        tab.clock.run_for(10_000)
        expect(tab.get_by_role("status").first).to_have_text(
            re.compile(r"Last updated at [0-9:]+: the node does not answer\.")
        )
        expect(tab.get_by_role("link", name="last-seen")).to_be_visible()
