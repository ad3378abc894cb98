"""A consumer that hands back what it was given is told every change, in order, or told that it cannot be."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest
from changes_scene import SCHEMA, VALUES, K, P, edges, people

import omnigraph as og

pytestmark = pytest.mark.slow


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.Graph.init(str(tmp_path / "graph"), SCHEMA)
    put(made, "ana", age=31)
    return made


def put(graph: og.Graph, *ids: str, branch: str | None = None, **values: Any) -> str:
    rows = people(graph, [{"id": name, **values} for name in ids])
    return graph.write({P: og.Upsert(rows)}, branch=branch).graph_commit_id


def ids(page: Any) -> list[list[str]]:
    return [[change.id for change in block.changes] for block in page.blocks]


def test_a_poll_starts_now_unless_told_otherwise(graph: og.Graph) -> None:
    page = graph.changes_poll()
    assert (page.blocks, page.caught_up, page.next_page_token) == ([], True, None)
    put(graph, "bob")
    page = graph.changes_poll(cursor=page.cursor)
    assert (ids(page), page.caught_up) == ([["bob"]], True)
    assert graph.changes_poll(cursor=page.cursor).blocks == []


def test_a_poll_may_start_at_the_beginning_or_after_a_commit(graph: og.Graph) -> None:
    first = graph.head_commit_id_for_branch()
    put(graph, "bob")
    assert ids(graph.changes_poll(start="beginning")) == [["ana"], ["bob"]]
    assert ids(graph.changes_poll(start=f"after:{first}")) == [["bob"]]


def test_a_branch_is_told_from_the_first_commit_it_inherited(graph: og.Graph) -> None:
    graph.branch_create("draft")
    put(graph, "bob", branch="draft")
    put(graph, "cyd")
    assert ids(graph.changes_poll(branch="draft", start="beginning")) == [["ana"], ["bob"]]
    assert ids(graph.changes_poll(start="beginning")) == [["ana"], ["cyd"]]


def test_a_poll_ends_at_the_head_it_saw_and_the_next_one_goes_on(graph: og.Graph) -> None:
    put(graph, "bob", "cyd", "dan")
    page = graph.changes_poll(start="beginning", limit=2)
    assert ids(page) == [["ana"], ["bob"]]
    put(graph, "late")
    page = graph.changes_poll(page_token=page.next_page_token)
    assert (ids(page), page.caught_up) == ([["cyd", "dan"]], False)
    page = graph.changes_poll(cursor=page.cursor)
    assert (ids(page), page.caught_up) == ([["late"]], True)


def test_a_page_holds_no_more_bytes_than_asked_and_one_large_change_travels_alone(graph: og.Graph) -> None:
    graph.write({P: og.Upsert(people(graph, [{"id": n, "photo": b"x" * 4000} for n in ("b", "c", "d")]))})
    page = graph.changes_poll(start="beginning", page_bytes=5500)
    sizes = [[len(b.changes) for b in page.blocks]]
    while page.next_page_token or not page.caught_up:
        page = graph.changes_poll(cursor=page.cursor, page_token=page.next_page_token, page_bytes=5500)
        sizes.append([len(b.changes) for b in page.blocks])
    assert sizes == [[1], [1], [1], [1]]


def test_at_most_so_many_commits_are_told_at_once(graph: og.Graph) -> None:
    for name in "bcd":
        put(graph, name)
    page = graph.changes_poll(start="beginning", commits=2)
    assert (ids(page), page.caught_up) == ([["ana"], ["b"]], False)
    assert ids(graph.changes_poll(cursor=page.cursor, commits=2)) == [["c"], ["d"]]


@pytest.mark.parametrize(("name", "value"), [("limit", 8193), ("page_bytes", (32 << 20) + 1), ("commits", 513)])
def test_more_than_the_most_is_refused(graph: og.Graph, name: str, value: int) -> None:
    with pytest.raises(og.LimitExceeded):
        graph.changes_poll(**{name: value})
    with pytest.raises(og.BadRequest):
        graph.changes_poll(**{name: 0})


def test_the_filter_is_part_of_a_cursor_in_one_form(graph: og.Graph) -> None:
    both = graph.changes_poll(kinds=["edge", "node", "node"], ops=["insert", "delete", "update"]).cursor
    put(graph, "bob")
    assert ids(graph.changes_poll(cursor=both)) == [["bob"]]
    some = graph.changes_poll(type_names=["Person", "City", "Person"]).cursor
    put(graph, "cyd")
    assert ids(graph.changes_poll(cursor=some, type_names=["City", "Person"])) == [["cyd"]]
    with pytest.raises(og.BadRequest, match="change cursor rejected: it was made with another filter"):
        graph.changes_poll(cursor=some)


def test_a_filter_leaves_out_changes_and_no_commit(graph: og.Graph) -> None:
    graph.write({K: og.Append(edges(graph, [{"id": "k", "src": "ana", "dst": "ana"}]))})
    put(graph, "ana", age=32)
    assert ids(graph.changes_poll(start="beginning", kinds=["edge"])) == [[], ["k"], []]
    assert ids(graph.changes_poll(start="beginning", ops=["update"])) == [[], [], ["ana"]]
    assert ids(graph.changes_poll(start="beginning", type_names=["Person"])) == [["ana"], [], ["ana"]]


def test_a_cursor_of_another_branch_is_refused(graph: og.Graph) -> None:
    cursor = graph.changes_poll().cursor
    graph.branch_create("draft")
    with pytest.raises(og.BadRequest, match="change cursor rejected: it belongs to branch 'main'"):
        graph.changes_poll(cursor=cursor, branch="draft")


def test_a_cursor_of_a_branch_that_was_made_again_is_refused(graph: og.Graph) -> None:
    graph.branch_create("draft")
    cursor = graph.changes_poll(branch="draft").cursor
    graph.branch_delete("draft")
    graph.branch_create("draft")
    with pytest.raises(og.BadRequest, match="change cursor rejected: it belongs to an earlier branch"):
        graph.changes_poll(cursor=cursor, branch="draft")


def test_a_cursor_of_another_graph_is_refused(graph: og.Graph, tmp_path: Path) -> None:
    other = og.Graph.init(str(tmp_path / "other"), SCHEMA)
    with pytest.raises(og.BadRequest, match="change cursor rejected: it belongs to another graph"):
        other.changes_poll(cursor=graph.changes_poll().cursor)


def forged(members: Any) -> str:
    text = orjson.dumps(members)
    return urlsafe_b64encode(text + sha256(text).digest()).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "token",
    ["", "abc", "é", "****", "A" * 5000, forged([]), forged({}), forged({"k": "cursor"}), forged({"k": 1, "g": [2]})],
)
def test_no_text_that_is_not_a_token_does_harm(graph: og.Graph, token: str) -> None:
    commit = graph.head_commit_id_for_branch() or ""
    for call in (
        lambda: graph.changes_poll(cursor=token),
        lambda: graph.changes_poll(page_token=token),
        lambda: graph.commit_changes(commit, page_token=token),
    ):
        with pytest.raises(og.BadRequest, match="rejected: "):
            call()


def test_a_changed_cursor_is_refused(graph: og.Graph) -> None:
    cursor = graph.changes_poll().cursor or ""
    for at in range(0, len(cursor), 7):
        other = cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :]
        with pytest.raises(og.BadRequest, match="change cursor rejected"):
            graph.changes_poll(cursor=other)


def test_a_page_token_belongs_to_one_commit_and_one_filter(graph: og.Graph) -> None:
    one, two = put(graph, "b", "c", "d"), put(graph, "e", "f")
    token = graph.commit_changes(one, limit=1).next_page_token
    assert [c.id for c in graph.commit_changes(one, page_token=token).changes] == ["c", "d"]
    with pytest.raises(og.BadRequest, match=f"rejected: it belongs to commit {one}"):
        graph.commit_changes(two, page_token=token)
    with pytest.raises(og.BadRequest, match="rejected: it was made with another filter"):
        graph.commit_changes(one, page_token=token, ops=["insert"])
    with pytest.raises(og.BadRequest, match="rejected: it is a token of another kind"):
        graph.changes_poll(page_token=token)


def test_a_page_of_another_handle_goes_on_where_the_first_ended(graph: og.Graph) -> None:
    names = [f"p{i:04}" for i in range(3000)]
    commit = put(graph, *names)
    first = graph.commit_changes(commit, limit=1100)
    again = og.Graph.open(graph.uri, "r").commit_changes(commit, limit=8000, page_token=first.next_page_token)
    here = graph.commit_changes(commit, limit=8000, page_token=first.next_page_token)
    assert [c.id for c in [*first.changes, *again.changes]] == names
    assert [c.id for c in here.changes] == [c.id for c in again.changes]


def test_ids_of_any_length_fit_into_a_token(graph: og.Graph) -> None:
    names = sorted("é" * n + tail for n in (31, 127, 500) for tail in ("", "x", "y"))
    commit = put(graph, *names)
    block, found = graph.commit_changes(commit, limit=1), []
    while True:
        found += [change.id for change in block.changes]
        if block.next_page_token is None:
            break
        assert len(block.next_page_token) <= 4096
        block = graph.commit_changes(commit, limit=1, page_token=block.next_page_token)
    assert found == names


def test_history_that_cleanup_removed_is_an_error_and_a_baseline_goes_on(graph: og.Graph) -> None:
    start = graph.changes_poll(start="beginning", commits=1)
    lost = put(graph, "bob")
    put(graph, "cyd")
    put(graph, "dan")
    graph.cleanup(keep=1, confirm=True)
    with pytest.raises(og.ChangeFeedGap) as gap:
        graph.changes_poll(cursor=start.cursor)
    assert (gap.value.first_unreadable_commit_id, gap.value.cursor) == (lost, start.cursor)
    with pytest.raises(og.Reclaimed):
        graph.commit_changes(lost)
    with pytest.raises(og.Reclaimed):
        graph.diff("main~2", "main")
    *_, last = graph.changes_baseline()
    cursor = orjson.loads(last)["baseline"]["resume_cursor"]
    put(graph, "eve")
    assert ids(graph.changes_poll(cursor=cursor)) == [["eve"]]


def test_what_can_be_read_is_told_before_the_gap(graph: og.Graph) -> None:
    kept = [graph.head_commit_id_for_branch() or "", put(graph, "bob")]
    lost = put(graph, "cyd")
    put(graph, "dan")
    put(graph, "eve")
    for number, commit in enumerate(kept):
        graph.tag_create(f"kept{number}", commit)
    graph.cleanup(keep=1, confirm=True)
    page = graph.changes_poll(start=f"after:{kept[0]}")
    assert (ids(page), page.caught_up) == ([["bob"]], False)
    with pytest.raises(og.ChangeFeedGap) as gap:
        graph.changes_poll(cursor=page.cursor)
    assert gap.value.first_unreadable_commit_id == lost


def replay(state: dict[tuple[str, str], Any], page: Any) -> None:
    """What a consumer does with a page, JSON as it is."""
    for block in orjson.loads(orjson.dumps(page.to_json()))["blocks"]:
        for change in block["changes"]:
            place = (change["type"]["name"], change["id"])
            if change["op"] == "delete":
                assert state.pop(place)
            else:
                assert (place in state) == (change["op"] == "update")
                state[place] = change["after"]


def exported(lines: bytes) -> dict[tuple[str, str], Any]:
    state: dict[tuple[str, str], Any] = {}
    for line in map(orjson.loads, lines.splitlines()):
        if "baseline" in line:
            continue
        data = line["data"]
        image: dict[str, Any] = {"properties": {k: v for k, v in data.items() if k != "id"}}
        if "edge" in line:
            image["endpoints"] = {"from": line["from"], "to": line["to"]}
        state[line.get("type") or line["edge"], data["id"]] = image
    return state


def test_a_baseline_and_what_is_polled_after_it_are_the_export(graph: og.Graph) -> None:
    finite = {n: [v for v in values if v == v] for n, values in VALUES.items() if n not in ("big", "marks")}
    put(graph, *(f"p{i}" for i in range(20)))
    lines = b"".join(graph.changes_baseline())
    state, cursor = exported(lines), orjson.loads(lines.splitlines()[-1])["baseline"]["resume_cursor"]
    for at in range(7):
        rows = [{"id": f"p{i}", **{n: v[(i * at) % len(v)] for n, v in finite.items()}} for i in range(at, 25, 3)]
        graph.write({P: og.Upsert(people(graph, rows)), K: og.Upsert(edges(graph, _links(at)))})
        graph.write({P: og.Delete((f"p{at}",)) if at % 2 else og.Compact()})
        token = None
        for _ in range(100):
            page = graph.changes_poll(cursor=None if token else cursor, page_token=token, limit=5)
            replay(state, page)
            token, cursor = page.next_page_token, page.cursor
            if page.caught_up:
                break
    assert state == exported(b"".join(graph.export()))


def _links(at: int) -> list[dict[str, Any]]:
    return [{"id": f"k{i}", "src": "p0", "dst": f"p{at}", "since": at} for i in range(at % 3, 6, 2)]


def test_a_baseline_of_some_types_goes_on_with_those(graph: og.Graph) -> None:
    lines = b"".join(graph.changes_baseline(kinds=["edge"])).splitlines()
    assert len(lines) == 1
    cursor = orjson.loads(lines[-1])["baseline"]["resume_cursor"]
    graph.write({K: og.Append(edges(graph, [{"id": "k", "src": "ana", "dst": "ana"}]))})
    put(graph, "bob")
    assert ids(graph.changes_poll(cursor=cursor, kinds=["edge"])) == [["k"], []]


@pytest.mark.parametrize(
    ("asked", "error", "text"),
    [
        ({"start": "yesterday"}, og.BadRequest, "unknown start"),
        ({"start": "after:nothing"}, og.NotFound, "is not in the history"),
        ({"start": "now", "cursor": "x"}, og.BadRequest, "given together"),
        ({"kinds": ["nodes"]}, og.BadRequest, "unknown kind 'nodes'"),
        ({"ops": ["upsert"]}, og.BadRequest, "unknown op 'upsert'"),
        ({"type_names": ["Persn"]}, og.NotFound, "unknown type 'Persn'"),
        ({"branch": "nowhere"}, og.NotFound, "branch 'nowhere' not found"),
        ({"branch": "__schema_apply_lock__"}, og.BadRequest, "internal"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason(
    graph: og.Graph, asked: dict[str, Any], error: type[og.OmniError], text: str
) -> None:
    with pytest.raises(error, match=text):
        graph.changes_poll(**asked)
