# SPDX-License-Identifier: Apache-2.0
"""The alerting rules in deploy/ ask only for metrics that there are, and the page on metrics names them."""

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
    asked = {name for expression in expressions() for name in METRICS.findall(expression)}
    assert len(asked) >= 5
    assert asked <= known


def test_every_rule_is_whole() -> None:
    rules = RULES.split("- alert: ")[1:]
    assert len(rules) == len(expressions())
    for rule in rules:
        assert re.match(r"Groupkeeper\w+\n", rule)
        for part in ("expr: ", "severity: ", "summary: ", "description: "):
            assert rule.count(part) == 1, rule


def test_the_page_gives_the_rules_as_they_are() -> None:
    advice = (ROOT / "docs" / "metrics.md").read_text().partition("## What to be woken by")[2]
    for expression in expressions():
        if "log_" in expression:
            assert expression in re.sub(r"\s+", " ", advice)
