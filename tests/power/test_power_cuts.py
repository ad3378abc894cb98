"""Whenever the power goes, the graph that comes back is the one before or the one after; no answer is taken back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from crash_cases import RECOVERY_POINTS, seed_of_today
from power_disk import LOST
from power_scenes import ANSWERS, SCENES
from power_world import BY_NAME, Cut, Played, World, few, many, sampled

from omnigraph.base.failpoints import WINDOWS
from omnigraph.commit import plan

SEED = seed_of_today()
CHANCES_PER_SCENE = 2
# One scene for each writer, and those whose order of syncs is their own.
WINDOW_SCENES = (
    "init",
    "first_write",
    "upsert_2t",
    "upsert_and_delete_2t",
    "overwrite_2t",
    "scalar_index_2t",
    "compaction_2t",
    "revert_1t",
    "reset_2t",
    "schema_catch_up_1t",
    "schema_apply_1t",
    "apply",
    "optimize",
    "manifest_compaction",
    "projections",
    "undo",
    "back_from_half_landed_unsynced",
    "forward_from_landed_unsynced",
    "settled_from_published_unsynced",
)
pytestmark = pytest.mark.slow


def hold(world: World, played: Played, cuts: list[Cut], count: Callable[[int], None]) -> None:
    count(len(cuts))
    wrong = [found for cut in cuts if (found := world.check(played, cut)) is not None]
    assert not wrong, f"{len(wrong)} of {len(cuts)} disks, seed {SEED}:\n" + "\n".join(wrong[:10])


@pytest.mark.parametrize("name", WINDOW_SCENES)
def test_a_power_cut_in_any_window_leaves_the_graph_before_or_after(
    name: str, world: World, count_cuts: Callable[[int], None]
) -> None:
    played = world.played(name)
    hold(world, played, world.cuts(played, played.windows(), few, is_coarse=True), count_cuts)


@pytest.mark.parametrize("name", [s.name for s in SCENES])
def test_a_power_cut_between_any_two_syncs_leaves_the_graph_before_or_after(
    name: str, world: World, count_cuts: Callable[[int], None]
) -> None:
    played = world.played(name)
    every = world.cuts(played, played.cuts(), many(SEED))
    hold(world, played, sampled(every, CHANCES_PER_SCENE, f"{SEED} {name}"), count_cuts)


@pytest.mark.full
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", [s.name for s in SCENES])
def test_every_disk_that_a_power_cut_may_leave_is_the_graph_before_or_after(
    name: str, world: World, count_cuts: Callable[[int], None]
) -> None:
    played = world.played(name)
    hold(world, played, world.cuts(played, played.cuts(), many(SEED)), count_cuts)


def test_cuts_fall_into_every_window_of_every_writer_and_every_point_of_recovery(world: World) -> None:
    cut = {name for scene in WINDOW_SCENES for name in world.played(scene).windows().values()}
    writers = {w.name for w in vars(plan).values() if isinstance(w, plan.Writer)}
    assert cut >= {f"{writer}.{window}" for writer in writers - {"recovery"} for window in WINDOWS}
    assert cut >= set(RECOVERY_POINTS)
    assert cut >= {*ANSWERS, "init.schema_written", "init.tables_created", "init.pre_manifest", "init.manifest_created"}


def test_the_deaths_before_recoveries_make_it_go_forward_back_and_find_it_settled(world: World) -> None:
    before, after = world.played("upsert_2t").states
    assert before != after
    for scene in SCENES:
        if scene.died is not None and scene.meant == "upsert_2t":
            shown = world.played(scene.name).states[-1].tables
            assert shown == (before if scene.name.startswith("back") else after).tables, scene.name
    assert world.played("undo").states[-1].tables == before.tables


def test_without_syncs_an_acknowledged_write_may_be_lost_and_these_tests_would_tell(world: World) -> None:
    scene = BY_NAME["append_1t"]
    careless = dataclasses.replace(scene, order={**scene.order, "settings": {"storage_durability": "os"}})
    played = world.play(careless)
    acknowledged = {i: name for i, name in played.windows().items() if name in ANSWERS}
    (cut,) = world.cuts(played, acknowledged, lambda _: iter([LOST]))
    found = world.check(played, cut)
    assert found is not None
    assert "a reader sees neither before nor after" in found
