"""Asks rules of relations that executors read: deals them into buckets, then has each bucket asked."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa

from omnigraph.engine.write.validate.rules import Rule
from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.bulk.spread import SpreadRelation, spread
from omnigraph.pipeline.worker.buckets import Deal, Question, Told, ask_buckets, deal_pieces
from omnigraph.sets.scratch import Relation
from omnigraph.settings import Settings
from omnigraph.storage.row_files import RowFile

_ROWS_PER_BUCKET = 500_000
_BUCKETS_MAX = 4_096


class Questions:
    """One load's questions. What was dealt once serves every rule that compares by the same columns."""

    def __init__(self, desk: Desk, settings: Settings) -> None:
        self._desk = desk
        self._settings = settings
        self._dealt: dict[bytes, tuple[RowFile, ...]] = {}

    def ask(self, rule: Rule, relations: Mapping[str, Relation], first_max: int | None = None) -> list[Told]:
        lying = {name: spread(self._desk, relation) for name, relation in relations.items()}
        buckets = self._buckets(max((relation.row_count for relation in lying.values()), default=0))
        deals = {name: self.deal_of(relation, rule.keys[name], buckets) for name, relation in lying.items()}
        files = self.deal(lying, deals)
        question = Question(rule.sql, files, deals, self._settings, self._desk.folder, first_max)
        groups = self._desk.grouped(list(range(buckets)))
        return self._desk.answers(groups, partial(ask_buckets, question=question), "checking rows")

    def deal_of(self, relation: SpreadRelation, keys: Sequence[str], buckets: int) -> Deal:
        return Deal(relation.schema.serialize().to_pybytes(), tuple(keys), buckets, self._desk.folder)

    def deal(
        self, relations: Mapping[str, SpreadRelation], deals: Mapping[str, Deal]
    ) -> dict[str, tuple[RowFile, ...]]:
        """The files in which the rows of each relation lie by bucket."""
        tokens = {name: _token(relation, deals[name]) for name, relation in relations.items()}
        missing = {name: relations[name] for name, token in tokens.items() if token not in self._dealt}
        items = [(name, piece) for name, relation in missing.items() for piece in relation.pieces]
        found: dict[str, list[RowFile]] = {name: [] for name in missing}
        task = partial(deal_pieces, deals={name: deals[name] for name in missing})
        for answer in self._desk.answers(self._desk.grouped(items), task, "dealing rows"):
            for name, file in answer:
                found[name].append(file)
        for name, files in found.items():
            self._dealt[tokens[name]] = tuple(files)
        return {name: self._dealt[token] for name, token in tokens.items()}

    def _buckets(self, rows: int) -> int:
        """A power of two, so that relations of like size are dealt alike."""
        wanted = max(self._desk.cores, -(-rows // _ROWS_PER_BUCKET))
        return min(1 << (wanted - 1).bit_length(), _BUCKETS_MAX)


def _token(relation: SpreadRelation, deal: Deal) -> bytes:
    """Equal for the same rows dealt alike; the names of columns do not matter, their order does."""
    sources = [(piece.rows, [column.source for column in piece.columns]) for piece in relation.pieces]
    keys = [relation.schema.get_field_index(name) for name in deal.keys]
    types = [str(field.type) for field in relation.schema]
    return hashlib.sha256(pickle.dumps((sources, keys, types, deal.buckets))).digest()


def answer_schema(told: Sequence[Told]) -> pa.Schema | None:
    """What the answers look like; None if there is no row."""
    found = next((one for one in told if one.count), None)
    return None if found is None else pa.ipc.read_schema(pa.py_buffer(found.schema))
