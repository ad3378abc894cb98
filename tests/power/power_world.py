"""Recordings of every scene, the moments at which their power may go, and the disks that may be left."""

from __future__ import annotations

import itertools
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from crash_world import SCHEMA, TABLES, build_graph, rows_of
from power_checks import NOTHING, State, check_wreck
from power_disk import EMPTIED, HALVED, LOST, WHOLE, ZEROED, Choice, Disk, Image, by_chance, in_order
from power_recorder import Recorder, Recording, image_of, put
from power_scenes import ANSWERS, SCENES, Scene
from power_trace import Kind

from omnigraph.engine.write.changes import Append
from omnigraph.graph import Graph

BY_NAME = {s.name: s for s in SCENES}
CHANCES = 3
_SIDE = re.compile(r"/__locks/|latest_version_hint|/\.tmp|\.manifest#")
_BOOT = re.compile(rb'"boot":"[^"]*"')


@dataclass(frozen=True)
class Played:
    """A scene that was recorded: cuts may fall from `first` on; `states` are what was answered, in order."""

    scene: Scene
    recording: Recording
    first: int
    states: tuple[State, ...]
    meant: tuple[State, ...]

    def allowed(self, cut: int) -> tuple[State, ...]:
        answered = sum(1 for e in self.recording.events[:cut] if e.kind is Kind.MARK and e.path in ANSWERS)
        return (*self.states[answered : answered + 2], *(self.meant if answered == 0 else ()))

    def cuts(self) -> dict[int, str]:
        """Every moment worth a cut by its name: each window, and both sides of each sync."""
        found: dict[int, str] = {}
        for i, event in enumerate(self.recording.events):
            if i < self.first:
                continue
            if event.kind is Kind.MARK:
                found[i + 1] = event.path
            elif event.kind is Kind.SYNC_BEGINS:
                found.setdefault(i, f"before the sync of {event.path}")
            elif event.kind is Kind.SYNC_ENDS:
                found.setdefault(i + 1, f"after the sync of {event.path}")
        found.setdefault(len(self.recording.events), "the end")
        return found

    def windows(self) -> dict[int, str]:
        return {i: name for i, name in self.cuts().items() if not name.startswith(("before", "after"))}


@dataclass(frozen=True)
class Cut:
    """One disk that a power cut may leave."""

    name: str
    image: Image
    allowed: tuple[State, ...]


class World:
    def __init__(self, folder: Path, recorder: Recorder) -> None:
        self._folder = folder
        self._recorder = recorder
        self._numbers = itertools.count()
        self._starts: dict[str, Image] = {"nothing": {}}
        self._played: dict[str, Played] = {}

    def played(self, name: str) -> Played:
        if name not in self._played:
            self._played[name] = self.play(BY_NAME[name])
        return self._played[name]

    def play(self, scene: Scene) -> Played:
        before, first, died = self._start(scene.start), 0, None
        if scene.died is not None:
            earlier, place = scene.died
            died = self.played(earlier).recording
            first = place.find(died.events)
            before = died.disk_at(first).live()
        recording = self._recorder.record(before, scene.order, scene.graph)
        if died is not None:
            recording = died.and_then(recording, first)
        states = [self._state(scene, recording.before)]
        for i, event in enumerate(recording.events):
            if i >= first and event.kind is Kind.MARK and event.path in ANSWERS:
                states.append(self._state(scene, recording.disk_at(i).live()))
        meant = (self.played(scene.meant).states[-1],) if scene.meant else ()
        return Played(scene, recording, first, tuple(states), meant)

    def cuts(
        self,
        played: Played,
        moments: dict[int, str],
        choices: Callable[[Disk], Iterator[Choice]],
        is_coarse: bool = False,
    ) -> list[Cut]:
        """The different disks that cuts at these moments may leave; coarsely, side files make no difference."""
        found: dict[object, Cut] = {}
        disk = Disk(played.recording.before)
        for i in range(len(played.recording.events) + 1):
            if i in moments:
                allowed = played.allowed(i)
                for choice in choices(disk):
                    image = disk.after(choice)
                    matters = (i for i in image.items() if not (is_coarse and _SIDE.search(i[0])))
                    key = (frozenset(matters), len(allowed), allowed[0].commits)
                    found.setdefault(key, Cut(f"{i}: {moments[i]}, {choice.name}", image, allowed))
            if i < len(played.recording.events):
                disk.play(played.recording.events[i])
        return list(found.values())

    def check(self, played: Played, cut: Cut) -> str | None:
        """What is wrong after this cut, or None."""
        folder = put(_after_reboot(cut.image), self._folder / f"wreck-{next(self._numbers)}")
        try:
            # The power stays on from here, so waiting for the disk would prove nothing.
            with mock.patch("os.fsync", os.fstat):
                check_wreck(folder / played.scene.graph, cut.allowed)
        except Exception as error:
            return f"{played.scene.name}, {cut.name}: {type(error).__name__}: {str(error)[:600]}"
        finally:
            shutil.rmtree(folder)
        return None

    def _start(self, name: str) -> Image:
        if name not in self._starts:
            path = self._folder / f"start-{name}"
            path.mkdir()
            if name == "grown":
                build_graph(str(path / "g"))
            else:
                with Graph.init(str(path / "g"), SCHEMA) as graph:
                    if name == "rows":
                        graph.write({t: Append(rows_of(t, ["p0", "q2", "r"], "old")) for t in TABLES})
            self._starts[name] = image_of(path)
        return self._starts[name]

    def _state(self, scene: Scene, image: Image) -> State:
        if not any("__manifest/_versions" in path for path in image):
            return NOTHING
        folder = put(image, self._folder / f"state-{next(self._numbers)}")
        try:
            return State.of(Graph.open(str(folder / scene.graph), "r"))
        finally:
            shutil.rmtree(folder)


def _after_reboot(image: Image) -> Image:
    """The machine has started again: processes that files name by number are gone, whatever runs under it now."""
    return {path: data and _BOOT.sub(b'"boot":"an earlier one"', data) for path, data in image.items()}


def few(_disk: Disk) -> Iterator[Choice]:
    yield from (LOST, EMPTIED, HALVED)


def many(seed: int) -> Callable[[Disk], Iterator[Choice]]:
    """Every way to lose things that we know, and some by chance."""

    def choices(disk: Disk) -> Iterator[Choice]:
        yield from (LOST, EMPTIED, HALVED, ZEROED, WHOLE)
        yield from in_order(disk)
        yield from (by_chance(f"{seed}.{k}") for k in range(CHANCES))

    return choices


def sampled(cuts: list[Cut], count: int, seed: str) -> list[Cut]:
    return random.Random(seed).sample(cuts, min(count, len(cuts)))
