"""YAML read strictly: every value keeps its line and dotted path, and nothing is guessed.

Plain words that YAML takes for something else (`on`, `yes`, `2024-01-01`) are what they are written as where a key or
an expression is expected, and are refused with a hint to quote them where a text is expected.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import yaml

from omnigraph.pipeline.job.problems import Problems, Spot, nearest

_KINDS = {"str": "a text", "bool": "true or false", "int": "a whole number", "float": "a number", "null": "nothing"}
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True)
class Branch:
    """One value of the file."""

    node: yaml.Node
    path: str
    problems: Problems

    @property
    def spot(self) -> Spot:
        return Spot(self.node.start_mark.line + 1, self.path)

    def wrong(self, expected: str, hint: str = "") -> None:
        self.problems.add(self.spot, "wrong_kind", f"expects {expected}, not {self._kind()}{hint}")

    def _kind(self) -> str:
        if isinstance(self.node, yaml.MappingNode):
            return "a mapping"
        if isinstance(self.node, yaml.SequenceNode):
            return "a list"
        kind = self.node.tag.removeprefix(_TAG)
        return f"{_KINDS.get(kind, kind)} ({self.node.value})" if self.node.value else _KINDS.get(kind, kind)

    def _is(self, *kinds: str) -> bool:
        return isinstance(self.node, yaml.ScalarNode) and self.node.tag.removeprefix(_TAG) in kinds

    def text(self) -> str | None:
        if self._is("str") and self.node.value.strip():
            return str(self.node.value)
        quotable = isinstance(self.node, yaml.ScalarNode) and not self._is("null", "str")
        self.wrong("a text", f'; quote it: "{self.node.value}"' if quotable else "")
        return None

    def expression(self) -> str | None:
        """A column or SQL expression; a bare number or word is SQL too."""
        if isinstance(self.node, yaml.ScalarNode) and not self._is("null") and self.node.value.strip():
            return str(self.node.value).strip()
        self.wrong("a column or an SQL expression")
        return None

    def scalar(self) -> str | None:
        """Anything that is one value, as it is written."""
        if isinstance(self.node, yaml.ScalarNode) and not self._is("null"):
            return str(self.node.value).lower() if self._is("bool") else str(self.node.value)
        self.wrong("a text, a number, or true or false")
        return None

    def flag(self) -> bool | None:
        if self._is("bool"):
            return bool(yaml.SafeLoader.bool_values[str(self.node.value).lower()])
        self.wrong("true or false")
        return None

    def count(self) -> int | None:
        if self._is("int") and str(self.node.value).isdecimal() and int(self.node.value) > 0:
            return int(self.node.value)
        self.wrong("a whole number of at least 1")
        return None

    def one_of(self, allowed: Iterable[str]) -> str | None:
        names = tuple(allowed)
        if isinstance(self.node, yaml.ScalarNode) and self.node.value in names:
            return str(self.node.value)
        given = str(self.node.value) if isinstance(self.node, yaml.ScalarNode) else self._kind()
        self.problems.add(self.spot, "wrong_value", f"expects one of {', '.join(names)}, not {given!r}")
        return None

    def entries(self) -> list[tuple[str, Branch]]:
        """The members of a mapping in their order; a member given twice is told."""
        if not isinstance(self.node, yaml.MappingNode):
            self.wrong("a mapping")
            return []
        found: dict[str, Branch] = {}
        for key, value in self.node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.problems.add(Spot(key.start_mark.line + 1, self.path), "wrong_kind", "a name must be a plain text")
                continue
            name = str(key.value)
            below = Branch(value, f"{self.path}.{name}" if self.path else name, self.problems)
            if name in found:
                spot = Spot(key.start_mark.line + 1, below.path)
                self.problems.add(spot, "duplicate_key", f"'{name}' is given twice")
                continue
            found[name] = below
        return list(found.items())

    def members(self, known: Iterable[str], required: Iterable[str] = ()) -> dict[str, Branch]:
        """The members by name; unknown ones and required ones that are missing are told."""
        names = tuple(known)
        given = dict(self.entries())
        if isinstance(self.node, yaml.MappingNode):
            for name, branch in given.items():
                if name not in names:
                    self.problems.add(branch.spot, "unknown_key", f"unknown key '{name}'{nearest(name, names)}")
            for name in required:
                if name not in given:
                    spot = Spot(self.spot.line, f"{self.path}.{name}" if self.path else name)
                    self.problems.add(spot, "missing_key", f"'{name}' is missing")
        return {name: branch for name, branch in given.items() if name in names}

    def items(self) -> list[Branch]:
        if not isinstance(self.node, yaml.SequenceNode):
            self.wrong("a list")
            return []
        return [Branch(node, f"{self.path}[{i}]", self.problems) for i, node in enumerate(self.node.value)]

    @property
    def is_list(self) -> bool:
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)


def read_tree(text: str, problems: Problems, needs: str = "version, target and what to load") -> Branch | None:
    """The top of a YAML document; None when it is no YAML or is empty, which is told with what it `needs`."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        problems.add(Spot(line, "file"), "invalid_yaml", f"is not YAML: {error.problem or error.context}")
        return None
    except yaml.YAMLError as error:
        problems.add(Spot(1, "file"), "invalid_yaml", f"is not YAML: {str(error).splitlines()[0]}")
        return None
    if node is None:
        problems.add(Spot(1, "file"), "missing_key", f"the file is empty; it needs {needs}")
        return None
    return Branch(node, "", problems)
