"""Names of types, properties, sources and edges, made from the names that files and columns have."""

from __future__ import annotations

import re
import unicodedata

_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_REFERENCES = frozenset({"id", "key", "code", "ref", "fk", "no", "uuid"})
_IRREGULAR = {"people": "person", "children": "child", "men": "man", "women": "woman", "data": "data"}
_LETTERS = str.maketrans({"ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d"})
NODE_RESERVED = frozenset({"id"})
EDGE_RESERVED = frozenset({"id", "src", "dst", "from", "to"})


def words(text: str) -> list[str]:
    """The runs of letters and digits, accents taken off; what has no Latin form is dropped."""
    plain = unicodedata.normalize("NFKD", text.translate(_LETTERS)).encode("ascii", "ignore").decode()
    return re.findall(r"[A-Za-z0-9]+", plain)


def parts(text: str) -> list[str]:
    """The words in lower case; a change of case starts another one."""
    return [part.lower() for word in words(text) for part in _CAMEL.findall(word)]


def type_name(text: str) -> str:
    found = [word.capitalize() if word.isupper() else word[0].upper() + word[1:] for word in words(text)]
    name = "".join(found) or "Table"
    return name if name[0].isalpha() else f"T{name}"


def source_name(text: str) -> str:
    name = "_".join(words(text)).lower() or "table"
    return name if name[0].isalpha() else f"t_{name}"


def property_name(column: str, position: int, owner: str, reserved: frozenset[str] = NODE_RESERVED) -> str:
    """A name for a property; `owner`, the name of its source, comes before what could not stand alone."""
    found = words(column)
    if not found:
        return f"column_{position}"
    name = "_".join(found)
    lower = len(found) > 1 or name.isupper()
    name = name.lower() if lower else name[0].lower() + name[1:]
    return f"{owner}_{name}" if name in reserved or name[0].isdigit() else name


def edge_name(type_: str, column: str) -> str:
    """`People` and `team_id` make `PeopleTeam`."""
    return type_ + (type_name("_".join(stem(column))) if stem(column) else "Link")


def unique(name: str, taken: set[str]) -> str:
    """The name, with a number if it is taken in any case; it is taken afterwards."""
    number, found = 1, name
    while found.lower() in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found.lower())
    return found


def stem(column: str) -> list[str]:
    """What a reference is called after: `home_team_id` is `home`, `team`."""
    found = parts(column)
    while len(found) > 1 and found[-1] in _REFERENCES:
        found.pop()
    return found


def singular(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 2 else word


def key_rank(column: str, table: str) -> int:
    """How much a name says that a column is the key: 0 is most, 5 is nothing."""
    name, own = "_".join(parts(column)), parts(table)
    one = [*own[:-1], singular(own[-1])] if own else []
    order = ("id", "_".join([*own, "id"]), "_".join([*one, "id"]), "key", "code")
    return order.index(name) if name in order else len(order)


def refers_by_name(column: str, table: str, key: str) -> bool:
    """Whether a column's name says that it holds keys of a table."""
    found, target = parts(column), parts(table)
    if not found:
        return False
    if len(found) > 1 and found[-1] in _REFERENCES:
        return True
    named = bool(target) and singular(found[-1]) == singular(target[-1])
    return named or (found == parts(key) and found[-1] not in _REFERENCES)


def names_table(column: str, table: str) -> bool:
    """Whether a column is called after a table: `team`, `team_id` or `home_team` after `teams`."""
    found, target = stem(column), parts(table)
    return bool(found and target) and singular(found[-1]) == singular(target[-1])
