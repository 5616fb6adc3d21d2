# SPDX-License-Identifier: Apache-2.0
"""The alerting rules in deploy/ ask only for metrics that there are, and the runbooks say when each fires."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RULES = (ROOT / "deploy" / "prometheus.rules.yml").read_text()
METRICS = re.compile(r"\bgroupkeeper_\w+")


def expressions() -> list[str]:
    """What the rules ask for, one a rule."""
    return re.findall(r"^ +expr: (.+)$", RULES, re.MULTILINE)


def test_every_metric_in_a_rule_is_one_that_the_page_explains() -> None:
    known = set(METRICS.findall((ROOT / "docs" / "metrics.md").read_text()))
    asked = {
        re.sub(r"_(bucket|sum|count)$", "", name)
        for expression in expressions()
        for name in METRICS.findall(expression)
    }
    assert len(asked) >= 5
    assert asked <= known


def test_every_rule_is_whole() -> None:
    rules = RULES.split("- alert: ")[1:]
    assert len(rules) == len(expressions())
    for rule in rules:
        assert re.match(r"Groupkeeper\w+\n", rule)
        for part in ("expr: ", "severity: ", "summary: ", "description: "):
            assert rule.count(part) == 1, rule


def test_every_runbook_says_when_its_alert_fires() -> None:
    page = (ROOT / "docs" / "runbooks.md").read_text()
    paragraphs = [" ".join(each.split()) for each in page.split("\n\n")]
    for rule in RULES.split("- alert: ")[1:]:
        name, expression = rule.partition("\n")[0], re.findall(r"expr: (.+)", rule)[0]
        lasting = "".join(f", for {time}" for time in re.findall(r"for: (\w+)", rule))
        said = paragraphs[paragraphs.index(f"## {name}") + 1]
        assert said == f"**Fires when** `{' '.join(expression.split())}`{lasting}."
