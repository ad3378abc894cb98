"""Publishing: what is checked, what is refused, what a second call does, and how often it tries."""

from dataclasses import replace
from functools import partial

import pytest
from manifest_helpers import (
    CITY,
    PERSON,
    SCHEMA,
    commit_ids,
    intent,
    people,
    pin,
    publish,
    raw_by_id,
    raw_manifest,
)

from omnigraph import (
    Conflict,
    ExpectedVersionMismatch,
    Graph,
    PreconditionFailed,
    RowLevelCasContention,
    Unavailable,
    Upsert,
)
from omnigraph.manifest import publisher
from omnigraph.manifest.publisher import PUBLISHER_RETRY_BUDGET, HeadMoved, LeaseLost, Precondition
from omnigraph.manifest.rows import Changes, Registration, Tombstone
from omnigraph.storage.failures import CommitLost


@pytest.fixture
def graph(tmp_path) -> Graph:
    return Graph.init(str(tmp_path / "graph"), SCHEMA)


def unmoved(graph: Graph, act, error: type[Exception], text: str | None = None) -> Exception:
    """`act` raises, and the manifest holds the rows it held."""
    before = raw_manifest(graph.uri)
    with pytest.raises(error, match=text) as refused:
        act()
    assert raw_manifest(graph.uri) == before
    return refused.value


# ---- what the caller expects


def test_expected_version_that_holds_lets_the_publish_through(graph: Graph):
    publish(graph, Changes((pin(2, 5),)), {"node:Person": 1, "node:City": 1})
    assert graph.snapshot().tables["node:Person"].table_version == 2


def test_expected_version_that_does_not_hold_names_the_table_and_both_versions(graph: Graph):
    refused = unmoved(graph, lambda: publish(graph, Changes((pin(4),)), {"node:Person": 3}), ExpectedVersionMismatch)
    assert (refused.table_key, refused.expected, refused.actual) == ("node:Person", 3, 1)


def test_expected_zero_means_the_table_must_not_exist(graph: Graph):
    refused = unmoved(graph, lambda: publish(graph, Changes(), {"node:Person": 0}), ExpectedVersionMismatch)
    assert (refused.expected, refused.actual) == (0, 1)
    changes = Changes((pin(1, key="node:New", location="nodes/new"),), (Registration("node:New", "nodes/new"),))
    publish(graph, changes, {"node:New": 0})
    assert graph.snapshot().tables["node:New"].table_version == 1


def test_expected_version_of_a_missing_table_is_a_mismatch_with_zero(graph: Graph):
    refused = unmoved(graph, lambda: publish(graph, Changes(), {"node:Nowhere": 1}), ExpectedVersionMismatch)
    assert refused.actual == 0


def test_same_version_of_another_table_is_a_mismatch(graph: Graph):
    shown = graph.snapshot().tables["node:Person"]
    for then in (replace(shown, location="nodes/earlier"), replace(shown, table_branch="draft")):
        relied_on = {"node:Person": then}
        publishing = partial(graph.context.publisher.publish, None, Changes(), relied_on, intent())
        refused = unmoved(graph, publishing, ExpectedVersionMismatch)
        assert (refused.table_key, refused.expected, refused.actual) == ("node:Person", 1, 1)


@pytest.mark.parametrize("registers", [False, True], ids=["unregistered", "beside the one that is shown"])
def test_pin_of_a_table_that_its_name_does_not_show_is_refused(graph: Graph, registers: bool):
    registered = (Registration("node:Person", "nodes/other"),) if registers else ()
    changes = Changes((pin(2, location="nodes/other"),), registered)
    unmoved(graph, lambda: publish(graph, changes), Conflict, "does not lie at nodes/other")
    unmoved(graph, lambda: publish(graph, Changes((pin(1, key="node:New", location="nodes/new"),))), Conflict)


def test_one_commit_puts_a_table_in_the_place_of_another(graph: Graph):
    registered, hidden = Registration("node:Person", "nodes/other"), Tombstone("node:Person", PERSON, 1)
    publish(graph, Changes((pin(1, location="nodes/other"),), (registered,), (hidden,)), {"node:Person": 1})
    assert graph.snapshot().tables["node:Person"].location == "nodes/other"


def test_empty_expectation_publishes_whatever_the_state(graph: Graph):
    stale = Graph.open(graph.uri)
    publish(graph, Changes((pin(2, 5),)))
    landed = publish(stale, Changes((pin(7, 9),)), {})
    assert stale.snapshot().tables["node:Person"].table_version == 7
    assert landed.commit.parent_commit_id == graph.list_commits()[1].graph_commit_id


def test_required_head_commit_must_be_the_head(graph: Graph):
    first = graph.head_commit_id_for_branch()
    second = publish(graph, condition=Precondition(if_commit=first)).commit.graph_commit_id
    refused = unmoved(graph, lambda: publish(graph, condition=Precondition(if_commit=first)), PreconditionFailed)
    assert (refused.expected, refused.actual) == (first, second)


def test_publish_bound_to_a_parent_is_refused_once_the_head_moved(graph: Graph):
    first = graph.head_commit_id_for_branch()
    bound = Precondition(parent=first, bind_parent=True)
    publish(graph, condition=bound)
    unmoved(graph, lambda: publish(graph, condition=bound), HeadMoved, "moved from")


def test_publish_bound_to_no_parent_is_refused_by_any_head(graph: Graph):
    unmoved(graph, lambda: publish(graph, condition=Precondition(bind_parent=True)), HeadMoved)


def test_lower_lock_token_than_the_one_stamped_on_the_head_is_refused(graph: Graph):
    publish(graph, commit=intent(lock_token=7))
    unmoved(graph, lambda: publish(graph, commit=intent(lock_token=6)), LeaseLost, "locked by a later writer")
    publish(graph, commit=intent(lock_token=7))


# ---- lineage


def test_commit_follows_the_head_it_found_and_carries_only_its_own_row(graph: Graph):
    head = graph.head_commit_id_for_branch()
    before = raw_by_id(graph.uri)
    landed = publish(graph, commit=intent("merge", merged_parent_commit_id="01HZZZZZZZZZZZZZZZZZZZZZZM"))
    assert set(raw_by_id(graph.uri)) - set(before) == {f"graph_commit:after:{head}"}
    assert landed.commit.merged_parent_commit_id == "01HZZZZZZZZZZZZZZZZZZZZZZM"
    assert landed.commit.manifest_version == graph.snapshot().version


def test_commit_time_grows_even_when_the_clock_goes_back(graph: Graph, monkeypatch):
    times = iter([10**15, 5 * 10**14, 5 * 10**14, 2 * 10**18])
    monkeypatch.setattr(publisher, "now_us", lambda: next(times))
    first = graph.list_commits()[0].created_at
    made = [publish(graph).commit.created_at for _ in range(4)]
    assert made == [first + 1, first + 2, first + 3, 2 * 10**18]


# ---- a second call


def test_second_publish_of_one_commit_finds_the_first_and_adds_nothing(graph: Graph):
    commit = intent(message="once")
    first = publish(graph, Changes((pin(2, 5),)), {"node:Person": 1}, commit)
    rows = raw_manifest(graph.uri)
    again = publish(Graph.open(graph.uri), Changes((pin(2, 5),)), {"node:Person": 1}, commit)
    assert again.already
    assert again.commit == first.commit
    assert raw_manifest(graph.uri) == rows


def test_second_publish_finds_its_commit_below_later_ones(graph: Graph):
    commit = intent()
    publish(graph, commit=commit)
    for _ in range(3):
        publish(graph)
    assert publish(graph, {"never": "used"}, {"node:Person": 99}, commit).already


def test_error_after_the_append_landed_is_settled_by_looking_again(graph: Graph, monkeypatch):
    landing = publisher.append_if_head

    def lands_and_fails(*arguments):
        monkeypatch.setattr(publisher, "append_if_head", landing)
        landing(*arguments)
        raise Unavailable("the connection broke", what="store")

    monkeypatch.setattr(publisher, "append_if_head", lands_and_fails)
    commit = intent()
    assert publish(graph, commit=commit).already
    assert commit_ids(graph).count(commit.graph_commit_id) == 1


def test_error_before_the_append_landed_is_tried_again(graph: Graph, monkeypatch):
    landing = publisher.append_if_head

    def fails(*_arguments):
        monkeypatch.setattr(publisher, "append_if_head", landing)
        raise Unavailable("the connection broke", what="store")

    monkeypatch.setattr(publisher, "append_if_head", fails)
    assert not publish(graph).already


# ---- the budget


def lose(monkeypatch, graph: Graph, times: int, error: Exception | None = None) -> list[int]:
    """Make the next `times` appends fail, each after another commit got in between."""
    landing, lost = publisher.append_if_head, []

    def contended(*arguments):
        if len(lost) < times:
            lost.append(1)
            if error is not None:
                raise error
            raise CommitLost("could not publish: lost a race")
        return landing(*arguments)

    monkeypatch.setattr(publisher, "append_if_head", contended)
    return lost


def test_publish_survives_all_but_the_last_attempt_being_lost(graph: Graph, monkeypatch):
    lost = lose(monkeypatch, graph, PUBLISHER_RETRY_BUDGET - 1)
    publish(graph)
    assert len(lost) == PUBLISHER_RETRY_BUDGET - 1


def test_publish_gives_up_after_its_budget_and_says_so(graph: Graph, monkeypatch):
    lost = lose(monkeypatch, graph, 99)
    refused = unmoved(graph, lambda: publish(graph), RowLevelCasContention, "during each of 5 publish attempts")
    assert isinstance(refused, Conflict)
    assert (refused.branch, refused.attempts, len(lost)) == ("main", 5, PUBLISHER_RETRY_BUDGET)


def test_store_that_stays_away_is_reported_as_such(graph: Graph, monkeypatch):
    lose(monkeypatch, graph, 99, Unavailable("no network", what="store"))
    unmoved(graph, lambda: publish(graph), Unavailable, "no network")


def test_really_lost_append_is_published_on_the_next_head(graph: Graph, monkeypatch):
    other, landing = Graph.open(graph.uri), publisher.append_if_head

    def overtaken(*arguments):
        monkeypatch.setattr(publisher, "append_if_head", landing)
        publish(other)
        return landing(*arguments)

    monkeypatch.setattr(publisher, "append_if_head", overtaken)
    landed = publish(graph)
    assert landed.commit.parent_commit_id == commit_ids(graph)[1] == commit_ids(other)[1]
    raw_by_id(graph.uri)


# ---- rows are insert-only


def test_identical_rows_are_left_out(graph: Graph):
    changes = Changes((pin(2, 5),), (Registration("node:Person", PERSON),), (Tombstone("node:Gone", "nodes/g", 3),))
    publish(graph, changes)
    before = raw_by_id(graph.uri)
    landed = publish(graph, changes)
    assert set(raw_by_id(graph.uri)) - set(before) == {f"graph_commit:after:{landed.commit.parent_commit_id}"}


def test_row_of_an_older_version_published_again_is_left_out_too(graph: Graph):
    for version in (2, 3):
        publish(graph, Changes((pin(version, version),), (), (Tombstone("node:Gone", "nodes/g", version),)))
    publish(graph, Changes((pin(2, 2),), (), (Tombstone("node:Gone", "nodes/g", 2),)))
    raw_by_id(graph.uri)
    assert graph.snapshot().tables["node:Person"].table_version == 3


@pytest.mark.parametrize("second", [pin(2, 6), pin(1, 1)], ids=["other-count", "other-count-of-an-older-version"])
def test_row_that_contradicts_a_stored_one_is_a_conflict(graph: Graph, second):
    publish(graph, Changes((pin(2, 5),)))
    unmoved(graph, lambda: publish(graph, Changes((second,))), Conflict, "contradicts")


def test_version_never_published_below_the_pin_is_a_conflict(graph: Graph):
    publish(graph, Changes((pin(5, 5),)))
    unmoved(graph, lambda: publish(graph, Changes((pin(3, 3),))), Conflict, "contradicts")


def test_refused_write_leaves_both_tables_and_the_manifest_as_they_were(graph: Graph):
    head = graph.head_commit_id_for_branch()
    graph.write({"node:Person": Upsert(people("ana"))})
    with pytest.raises(PreconditionFailed):
        graph.write({"node:Person": Upsert(people("bob")), "node:City": Upsert(people("Rom"))}, if_commit=head)
    status = graph.status()
    assert not [t for t in status.branches[0].tables if t.drifted]
    assert graph.snapshot().tables["node:City"].location == CITY
    assert graph.snapshot().tables["node:Person"].row_count == 1
    assert replace(graph.snapshot(), version=0).version == 0
