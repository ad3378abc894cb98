"""A run's report as one HTML page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from omnigraph.pipeline.job.report import JobReport

_LISTED_MAX = 50


def report_page(report: JobReport) -> str:
    template = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    good = report.outcome == "committed"
    heading = f"{escape(report.file)}: " + ('<span class="good">committed</span>' if good else _bad("refused"))
    return template.substitute(
        title=f"{escape(report.file)}: {report.outcome}",
        heading=heading,
        summary=_summary(report),
        where=escape(f"{report.uri}, branch {report.branch}, {report.mode}; started {report.started_at}"),
        facts="".join(f"<li><b>{value}</b>{label}</li>" for label, value in _facts(report)),
        sections="\n".join(part for part in _sections(report) if part),
    )


def _summary(report: JobReport) -> str:
    if report.load is None:
        return _bad(report.error.describe() if report.error is not None else "the run was refused")
    index = f", indexes in <code>{escape(report.load.index_commit)}</code>" if report.load.index_commit else ""
    made = f", branch created from {escape(report.load.base_branch or '')}" if report.load.branch_created else ""
    return f"One commit, <code>{escape(report.load.commit)}</code>{index}{made}.{_merged(report)}"


def _merged(report: JobReport) -> str:
    if report.merge_error is not None:
        told = f"It was not merged into {report.merge_into}: {report.merge_error.describe()}"
        return f" {_bad(told)}"
    return "" if report.merge is None else f" Merged into {escape(report.merge.target)}: {report.merge.outcome}."


def _facts(report: JobReport) -> Iterable[tuple[str, str]]:
    for kind in ("node", "edge"):
        yield f"{kind}s loaded", f"{sum(c.rows for c in report.counts if c.kind == kind):,}"
    if report.load is not None:
        yield "rows rejected", f"{report.load.rejected:,}"
        yield "duplicates merged", f"{report.load.duplicates_merged:,}"
    if report.rules:
        yield "rules hold", f"{sum(rule.passed for rule in report.rules)} of {len(report.rules)}"
    yield "seconds", f"{report.seconds:,.1f}"


def _sections(report: JobReport) -> Iterable[str]:
    yield _listed("Warnings", report.warnings)
    if report.counts:
        most = max(count.rows for count in report.counts)
        loaded = [
            (count.type, count.kind, f"{count.rows:,}", _bar(count.rows, most, count.kind)) for count in report.counts
        ]
        yield _section("Rows loaded", ("type", "kind", "#rows", ""), loaded)
    if report.load is not None and report.load.rejected:
        file = escape(report.load.rejects_file or "")
        yield f"<h2>Rejected</h2><p>{report.load.rejected:,} rows were left out; they are in <code>{file}</code>.</p>"
    if report.rules:
        rows = [
            (
                escape(rule.name),
                escape(rule.on),
                f"<code>{escape(rule.check)}</code>",
                escape("" if rule.observed is None else str(rule.observed)),
                _verdict(rule.passed, rule.severity),
            )
            for rule in report.rules
        ]
        yield _section("Quality rules", ("rule", "on", "check", "found", "outcome"), rows, escaped=True)
    yield _violations(report.violations)
    if report.stages:
        longest = max(spent for _, spent in report.stages)
        timed = [(name, f"{spent:,.2f}", _bar(spent, longest, "time")) for name, spent in report.stages]
        yield _section("Time by stage", ("stage", "#seconds", ""), timed)


def _section(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], escaped: bool = False) -> str:
    """A table; a column whose name begins with # holds numbers, the one without a name holds bars."""
    kinds = ["number" if name.startswith("#") else "" if name else "bar" for name in columns]
    heads = "".join(f'<th class="{kind}">{name.lstrip("#")}</th>' for name, kind in zip(columns, kinds, strict=True))
    body = ""
    for row in rows:
        cells = zip(row, kinds, strict=True)
        body += "<tr>" + "".join(_cell(text, kind, escaped or kind == "bar") for text, kind in cells) + "</tr>\n"
    return f"<h2>{title}</h2>\n<table><thead><tr>{heads}</tr></thead><tbody>\n{body}</tbody></table>"


def _cell(text: str, kind: str, is_markup: bool) -> str:
    return f'<td class="{kind}">{text if is_markup else escape(text)}</td>'


def _bar(value: float, most: float, kind: str) -> str:
    width = 100 * value / most if most else 0
    return f'<div class="track"><div class="fill {kind}" style="width: {width:.1f}%"></div></div>'


def _verdict(passed: bool, severity: str) -> str:
    if passed:
        return '<span class="good">holds</span>'
    return _bad("stops the job") if severity == "error" else '<span class="warn">warning</span>'


def _violations(found: Sequence[dict[str, Any]]) -> str:
    if not found:
        return ""
    names = ("file", "line", "type", "property", "reason", "message")
    rows = [[str(v.get(name) if v.get(name) is not None else "") for name in names] for v in found[:_LISTED_MAX]]
    return _section("What is wrong", ("file", "#row", "type", "property", "reason", "message"), rows)


def _listed(title: str, lines: Sequence[str]) -> str:
    items = "".join(f'<li class="warn">{escape(line)}</li>' for line in lines)
    return f"<h2>{title}</h2><ul>{items}</ul>" if lines else ""


def _bad(text: str) -> str:
    return f'<span class="bad">{escape(text)}</span>'
