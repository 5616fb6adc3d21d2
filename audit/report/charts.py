# SPDX-License-Identifier: Apache-2.0
"""The charts of a report as shapes in a frame 400 wide; the template turns them into SVG, and styles colour them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from math import ceil, floor, log10
from typing import Final

import msgspec

from audit.options import SEVERITIES, Severity
from audit.report.model import Report

WIDTH: Final = 400.0
_LEFT: Final = 46.0
_RIGHT: Final = 8.0
_TOP: Final = 14.0
_PLOT: Final = 130.0
_FOOT: Final = 24.0
_ROW: Final = 34.0
_COLUMNS_MAX: Final = 168
_NAME_MAX: Final = 44
_ROWS_MAX: Final = 15


class ChartRectangle(msgspec.Struct, frozen=True, kw_only=True):
    """A rectangle in a chart; `says` is its description, `kind` selects its colour."""

    x: float
    y: float
    width: float
    height: float
    says: str
    kind: str = "plain"


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """A text at a place in a chart; `anchor` is SVG's text-anchor."""

    x: float
    y: float
    words: str
    anchor: str = "middle"
    kind: str = "axis"


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """One chart. `line` joins points, `grid` are heights of horizontal lines. Empty if there is nothing to show."""

    title: str
    note: str
    height: float
    bars: Sequence[ChartRectangle] = ()
    texts: Sequence[Text] = ()
    grid: Sequence[float] = ()
    line: Sequence[tuple[float, float]] = ()
    width: float = WIDTH
    left: float = _LEFT
    right: float = WIDTH - _RIGHT


def make_charts(report: Report) -> list[Chart]:
    """Return all charts, in the order of the page."""
    return [
        *([_findings(report)] if report.findings else []),
        _commits(report),
        _skew(report),
        _states(report),
        _growth(report),
        _rebalances(report),
    ]


def _findings(report: Report) -> Chart:
    totals: dict[tuple[Severity, str], int] = {}
    for finding in report.findings:
        key = finding.severity, finding.check
        totals[key] = totals.get(key, 0) + finding.count
    order = sorted(totals.items(), key=lambda item: (-SEVERITIES.index(item[0][0]), -item[1]))
    rows = [(check.replace("_", " "), count, severity) for (severity, check), count in order]
    return _rows("Findings", "how often, by check", rows[:_ROWS_MAX])


def _commits(report: Report) -> Chart:
    hours = {hour.hour_ms // 3_600_000: hour.commits for hour in report.hours}
    if not hours:
        return _nothing("Commits per hour", "no record has a time of the last two weeks")
    first, last = min(hours), max(hours)
    step = ceil((last - first + 1) / _COLUMNS_MAX)
    starts = range(first, last + 1, step)
    values = [sum(hours.get(start + more, 0) for more in range(step)) / step for start in starts]
    says = [
        f"{_day(start)} {start % 24:02d}:00: {value:,.0f} commits an hour"
        for start, value in zip(starts, values, strict=True)
    ]
    marks = _spread([f"{_day(start)} {start % 24:02d}h" for start in starts])
    return _columns("Commits per hour", "by the time of the record, UTC", values, says, marks)


def _day(hour: int) -> str:
    return f"{datetime.fromtimestamp(hour * 3600, UTC):%d %b}"


def _skew(report: Report) -> Chart:
    sizes = report.sizes
    values = [float(size.records) for size in sizes]
    says = [f"partition {size.partition}: {size.records:,} records, {size.bytes:,} bytes" for size in sizes]
    marks = _spread([str(size.partition) for size in sizes])
    return _columns("Records by partition", "of the log", values, says, marks)


def _states(report: Report) -> Chart:
    return _rows(
        "Groups by state",
        "as the log has them",
        [(state, count, "plain") for state, count in report.states.items()],
    )


def _rebalances(report: Report) -> Chart:
    rows = [(group, count, "plain") for group, count in report.rebalances]
    return _rows("Rebalances by group", "new generations in the log, the most frequent", rows)


def _growth(report: Report) -> Chart:
    runs = [*report.earlier, report.run][-60:]
    values = [run.bytes / (1 << 20) for run in runs]
    days = [f"{datetime.fromtimestamp(run.as_of_ms / 1000, UTC):%d %b}" for run in runs]
    says = [f"{day}: {value:,.1f} MiB" for day, value in zip(days, values, strict=True)]
    picture = _columns("Size of the log", "MiB, at each audit", values, says, _spread(days))
    if len(runs) < 2:
        return msgspec.structs.replace(picture, note="MiB; the next audit adds to this")
    line = [(bar.x + bar.width / 2, bar.y) for bar in picture.bars]
    dots = [
        msgspec.structs.replace(bar, x=x - 3, y=y - 3, width=6.0, height=6.0)
        for bar, (x, y) in zip(picture.bars, line, strict=True)
    ]
    return msgspec.structs.replace(picture, line=line, bars=dots)


def _nothing(title: str, note: str) -> Chart:
    return Chart(title=title, note=note, height=0.0)


def _columns(
    title: str, note: str, values: Sequence[float], says: Sequence[str], marks: Sequence[tuple[int, str]]
) -> Chart:
    """Return a chart of columns over a scale that starts at 0; `marks` are the words below, by column."""
    top = nice_ceiling(max(values, default=0.0))
    base = _TOP + _PLOT
    pitch = (WIDTH - _LEFT - _RIGHT) / max(len(values), 1)
    gap = min(2.0, pitch * 0.25)
    bars = []
    for index, (value, words) in enumerate(zip(values, says, strict=True)):
        height = max(value / top * _PLOT, 1.0 if value else 0.0)
        x = _LEFT + index * pitch + gap / 2
        bars.append(
            ChartRectangle(x=x, y=base - height, width=min(pitch - gap, 40.0), height=height, says=words)
        )
    steps = [top * part for part in (0, 0.5, 1)]
    scale = [
        Text(x=_LEFT - 6, y=_y(step, top) + 4, words=format_scale_number(step), anchor="end")
        for step in steps
    ]
    feet = [
        Text(x=_LEFT + (index + 0.5) * pitch, y=base + 16, words=words, anchor=_anchor(index, len(values)))
        for index, words in marks
    ]
    return Chart(
        title=title,
        note=note,
        height=base + _FOOT,
        bars=bars,
        texts=[*scale, *feet],
        grid=[_y(step, top) for step in steps],
    )


def _y(value: float, top: float) -> float:
    return _TOP + _PLOT * (1 - value / top)


def _anchor(index: int, count: int) -> str:
    if count < 3:
        return "middle"
    return "start" if index == 0 else "end" if index == count - 1 else "middle"


def _rows(title: str, note: str, rows: Sequence[tuple[str, int, str]]) -> Chart:
    """Return a chart with a line of words and a bar below it for each row: names of any length fit, also on a phone."""
    if not rows:
        return _nothing(title, "none")
    longest = max(count for _, count, _ in rows) or 1
    bars, texts = [], []
    for index, (name, count, kind) in enumerate(rows):
        y = index * _ROW
        width = max((WIDTH - 2) * count / longest, 2.0)
        bars.append(
            ChartRectangle(x=1, y=y + 18, width=width, height=9, says=f"{name}: {count:,}", kind=kind)
        )
        texts.append(Text(x=1, y=y + 13, words=shortened(name), anchor="start", kind="name"))
        texts.append(Text(x=WIDTH - 1, y=y + 13, words=f"{count:,}", anchor="end", kind="value"))
    return Chart(title=title, note=note, height=len(rows) * _ROW, bars=bars, texts=texts)


def shortened(name: str) -> str:
    """Return a name cut to _NAME_MAX characters, of which the last is "…", with unprintable ones replaced."""
    shown = "".join(char if char.isprintable() else "\ufffd" for char in name)
    return shown if len(shown) <= _NAME_MAX else shown[: _NAME_MAX - 1] + "…"


def _spread(words: Sequence[str]) -> list[tuple[int, str]]:
    """Return the first, the last and some of the words between, with their indexes."""
    count = len(words)
    if count < 5:
        return list(enumerate(words))
    places = sorted(
        {0, count // 2, count - 1} if len(words[0]) > 3 else {round(i * (count - 1) / 5) for i in range(6)}
    )
    return [(place, words[place]) for place in places]


def nice_ceiling(value: float) -> float:
    """Return the least of 1, 2, 5, 10, 20, 50... that is not below the value, so that a scale has round numbers."""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def format_scale_number(value: float) -> str:
    """Return a number for a scale: 1.5k, 20M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{unit}"
    return f"{value:g}"
