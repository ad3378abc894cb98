"""The report of a run: one page that a person can read and that needs nothing else, and the same as JSON."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from html.parser import HTMLParser

from omnigraph.base.errors import InvalidData
from omnigraph.engine.write.load import LoadResult, TypeCount
from omnigraph.pipeline.job.page import report_page
from omnigraph.pipeline.job.quality import RuleOutcome
from omnigraph.pipeline.job.report import JobReport, Stages

LOADED = LoadResult(
    uri="lib",
    branch="main",
    mode="merge",
    nodes=(TypeCount("Person", 4000), TypeCount("Team", 1000)),
    edges=(TypeCount("MemberOf", 2000),),
    duplicates_merged=3,
    rejected=7,
    operation_id="OP",
    commit="COMMIT",
    engine="spark",
    rejects_file="out/<rejects>.jsonl",
)
RULES = (
    RuleOutcome("enough", "members", "count(*) >= 10", "error", True, 4000),
    RuleOutcome("young", "members", "max(age) < 130", "warn", False, 131),
)


def report(**more: object) -> JobReport:
    known = {"file": "a&b.yaml", "uri": "lib", "branch": "main", "mode": "merge", "started_at": "2024-02-29T00:00:00Z"}
    stages = (("read rows", 2.0), ("check rows", 8.0))
    return JobReport(**{**known, "stages": stages, "rules": RULES, **more})  # type: ignore[arg-type]


class _Page(HTMLParser):
    """The words of a page, what it would fetch, and whether every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words = ""
        self.fetched: list[str] = []
        self.widths: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.fetched += [str(value) for name, value in attributes if name in ("src", "href")]
        self.fetched += [tag] if tag in ("script", "link", "img", "iframe") else []
        self.widths += [str(value) for name, value in attributes if name == "style"]
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.words += f"{data.strip()} " if data.strip() else ""


def test_the_page_says_what_was_loaded_and_fetches_nothing():
    page = _Page(report_page(report(load=LOADED)))
    assert page.fetched == []
    for words in (
        "a&b.yaml: committed",
        "One commit, COMMIT",
        "5,000 nodes loaded",
        "2,000 edges loaded",
        "7 rows rejected",
        "1 of 2 rules hold",
        "Person node 4,000",
        "they are in out/<rejects>.jsonl",
        "max(age) < 130 131 warning",
        "check rows 8.00",
    ):
        assert words in page.words, words


def test_bars_are_as_long_as_what_they_stand_for():
    assert _Page(report_page(report(load=LOADED))).widths == [
        "width: 100.0%",
        "width: 25.0%",
        "width: 50.0%",
        "width: 25.0%",
        "width: 100.0%",
    ]


def test_the_page_is_well_formed_markup():
    body = report_page(report(load=LOADED)).split("</head>")[1].removesuffix("</html>\n")
    assert ET.fromstring(body).tag == "body"


def test_a_run_that_was_refused_says_why_and_where():
    found = {"file": "p.csv", "line": 3, "type": "Person", "property": "age", "reason": "wrong_type", "message": "<no>"}
    error = InvalidData(violations=(found,), total=1, stage="convert")
    refused = report(error=error)
    page = _Page(report_page(refused))
    assert "a&b.yaml: refused" in page.words
    assert "p.csv 3 Person age wrong_type <no>" in page.words
    told = refused.to_json()
    assert (told["outcome"], told["error"], told["violations"]) == ("refused", "p.csv:3: <no>", [found])
    assert "commit" not in told


def test_programs_get_the_result_of_the_load_with_rules_and_times():
    told = report(load=LOADED).to_json()
    assert (told["outcome"], told["commit"], told["total_entities"], told["seconds"]) == (
        "committed",
        "COMMIT",
        7000,
        10.0,
    )
    assert told["stages"] == [{"name": "read rows", "seconds": 2.0}, {"name": "check rows", "seconds": 8.0}]
    assert [rule["passed"] for rule in told["quality"]] == [True, False]
    assert told["warnings"] == ["quality rule 'young' does not hold on members: max(age) < 130 (found 131)"]


def test_a_stage_entered_again_adds_to_its_time():
    stages = Stages()
    for name in ("read", "check", "read", "read"):
        stages.enter(name)
    stages.end()
    assert [name for name, _ in stages.spent()] == ["read rows", "check rows"]
