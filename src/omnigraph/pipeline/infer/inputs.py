"""What the command line names: files and folders, each one table of one format."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from omnigraph.base.errors import BadRequest, NotFound

Format = Literal["csv", "parquet", "json"]
FORMATS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
_PACKED = (".gz", ".zst")
_MAGIC = "\\[]{}*?"


@dataclass(frozen=True)
class Input:
    """`given` is how the user named it; `files` are the files themselves, in order of their names."""

    given: str
    title: str
    format: Format
    files: tuple[str, ...]

    def patterns(self, out: str) -> tuple[str, ...]:
        """The paths a pipeline file in `out` names: the file, or a glob for each ending in the folder."""
        start = os.path.abspath(out)
        if not os.path.isdir(self.given):
            return (_escaped(_relative(self.files[0], start)),)
        endings = dict.fromkeys(_ending(os.path.basename(file)) for file in self.files)
        return tuple(f"{_escaped(_relative(self.given, start))}/*{ending}" for ending in endings)

    def place(self, out: str) -> str:
        """The path of the file or folder itself, for what is read without patterns."""
        return _relative(self.given, os.path.abspath(out))


def _relative(path: str, start: str) -> str:
    return os.path.relpath(os.path.abspath(path), start)


def _escaped(path: str) -> str:
    return "".join(f"\\{c}" if c in _MAGIC else c for c in path)


def find_inputs(given: Sequence[str]) -> tuple[Input, ...]:
    """Every input in the order given; one that is named twice is refused, since its rows would be there twice."""
    found: list[Input] = []
    for path in given:
        if any(os.path.exists(path) and os.path.samefile(path, other.given) for other in found):
            raise BadRequest(f"'{path}' is given twice", "Name each file once.")
        found.append(_input(path))
    return tuple(found)


def _input(path: str) -> Input:
    if "://" in path:
        raise BadRequest(
            f"'{path}' is not a local path", "Copy some of the files to a local disk and infer from those."
        )
    if not os.path.exists(path):
        raise NotFound(f"no such file or folder: '{path}'", "Check the path; it is relative to the current directory.")
    name = os.path.basename(os.path.abspath(path))
    if os.path.isdir(path):
        return _folder(path, name)
    format_ = _format(name)
    if format_ is None:
        raise BadRequest(f"'{path}' is of no known format", f"Its name must end in {_endings()}.")
    if name.startswith((".", "_")):
        raise BadRequest(f"Spark takes '{path}' for hidden", "Rename it: its name must not begin with '.' or '_'.")
    return Input(path, _title(name), format_, (path,))


def _folder(path: str, name: str) -> Input:
    try:
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError as error:
        raise BadRequest(f"'{path}' cannot be read: {error.strerror}", "Allow this user to read it.") from error
    files = [e for e in entries if e.is_file() and not e.name.startswith((".", "_")) and _format(e.name)]
    if not files:
        hint = f"Files are taken by name: {_endings()}; folders inside it are not looked into."
        raise BadRequest(f"folder '{path}' holds no file of a known format", hint)
    formats = {_format(e.name) for e in files}
    if len(formats) > 1:
        raise BadRequest(
            f"folder '{path}' holds files of several formats: {', '.join(sorted(str(f) for f in formats))}",
            "A folder is one table. Name the files one by one, or put each format in a folder of its own.",
        )
    format_ = _format(files[0].name)
    assert format_ is not None
    return Input(path, _title(name), format_, tuple(e.path for e in files))


def _unpacked(name: str) -> str:
    return next((name.removesuffix(end) for end in _PACKED if name.lower().endswith(end)), name)


def _format(name: str) -> Format | None:
    return FORMATS.get(os.path.splitext(_unpacked(name))[1].lower())


def _ending(name: str) -> str:
    plain = os.path.splitext(_unpacked(name))[1]
    return plain + name[len(_unpacked(name)) :]


def _title(name: str) -> str:
    """The name without its endings; folders that Spark wrote have them too."""
    plain = _unpacked(name)
    stem, ending = os.path.splitext(plain)
    return stem if ending.lower() in FORMATS else plain


def _endings() -> str:
    return ", ".join(FORMATS) + " (text files also with .gz)"


def refuse_pattern(file: str) -> None:
    """Spark reads a file whose rows span lines by its name once more, as a pattern, and then finds nothing."""
    odd = next((c for c in os.path.abspath(file) if c in _MAGIC), None)
    if odd is not None:
        told = f"Spark takes the '{odd}' in the path of '{file}' for a pattern, as its cells hold line breaks"
        raise BadRequest(told, f"Rename the file or its folder; avoid {' '.join(_MAGIC)}.")


def is_zst(file: str) -> bool:
    return file.lower().endswith(".zst")
