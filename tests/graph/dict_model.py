"""What a graph means, as plain dictionaries: the oracle of the state machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Row = tuple[int | None, str]
Content = dict[str, dict[str, Row]]
TABLES = ("node:City", "node:Person")


@dataclass(frozen=True)
class Edit:
    """One change of one table; `kind` says how `rows` and `ids` are meant."""

    kind: str
    rows: Mapping[str, Row] = field(default_factory=dict)
    ids: tuple[str, ...] = ()

    def applied(self, before: Mapping[str, Row]) -> dict[str, Row] | None:
        """The table afterwards, or None when the edit is refused."""
        match self.kind:
            case "append":
                return None if set(self.rows) & set(before) else {**before, **self.rows}
            case "upsert":
                kept = {k: v for k, v in before.items() if k not in self.ids}
                return {**kept, **self.rows}
            case "delete":
                return {k: v for k, v in before.items() if k not in self.ids}
            case "delete_where":
                return {k: v for k, v in before.items() if v[0] is None or v[0] >= 5}
            case "overwrite":
                return dict(self.rows)
            case "compact" | "index":
                return dict(before)
        raise AssertionError(self.kind)


@dataclass
class DictModel:
    """The present content and the content of every commit, by graph version."""

    content: Content = field(default_factory=lambda: {t: {} for t in TABLES})
    history: dict[int, Content] = field(default_factory=dict)
    commit_ids: list[str] = field(default_factory=list)

    def after(self, edits: Mapping[str, Edit]) -> Content | None:
        """The content after a commit of these edits, or None when it is refused as a whole."""
        result: Content = {t: dict(rows) for t, rows in self.content.items()}
        for table, edit in edits.items():
            changed = edit.applied(result[table])
            if changed is None:
                return None
            result[table] = changed
        return result

    def committed(self, version: int, commit_id: str, content: Content) -> None:
        assert version > max(self.history, default=0), "a graph version only grows"
        self.content = content
        self.history[version] = content
        self.commit_ids.append(commit_id)

    def at(self, version: int) -> Content:
        """The content of the newest commit that is not younger than `version`."""
        return self.history[max(v for v in self.history if v <= version)]
