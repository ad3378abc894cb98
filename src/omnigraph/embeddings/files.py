"""Adds vectors to a file of records before it is loaded.

Holds at every return:
  1. The output has its name only if it is complete; a run that fails leaves no part of it.
  2. Lines that are not concerned are in it byte for byte, and of the others only the vector property changed.
  3. What a failed run had embedded is kept for the next one (`kept.py`).
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import orjson
import pyarrow as pa

from omnigraph.base.errors import BadRequest, NotFound, OmniError, Unavailable
from omnigraph.embeddings.embedder import Embedder, Embeds
from omnigraph.embeddings.kept import KeptVectors
from omnigraph.embeddings.rows import Choice, Mode, text_of
from omnigraph.embeddings.spec import EmbedSpec, Seed
from omnigraph.embeddings.splice import with_property, without_property
from omnigraph.embeddings.vectors import Vector
from omnigraph.settings import Settings

Progress = Callable[[str, int], None]
AnyPath = str | os.PathLike[str]

_HELD_BYTES_MAX = 8 << 20
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class EmbedSummary:
    """What a run did. `selected_records` are those the mode was about."""

    input: str
    output: str
    records: int
    selected_records: int
    embedded_records: int
    cleaned_records: int
    mode: str
    dimension: int
    model: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def embed_file(
    input: AnyPath,
    output: AnyPath,
    spec: EmbedSpec | Mapping[str, Any] | AnyPath,
    *,
    types: Sequence[str] = (),
    select: Sequence[str] = (),
    reembed_all: bool = False,
    clean: bool = False,
    settings: Settings | None = None,
    progress: Progress | None = None,
    embeds: Callable[[Settings, str | None], Embeds] = Embedder,
) -> EmbedSummary:
    """Write the records of `input` to `output` with the vectors that `spec` asks for.

    Only missing vectors are made, unless `select` (`[Type:]field=value`) names rows or `reembed_all` is set; `clean`
    removes them instead. `types` limits all of it. Input and output may be the same file. `embeds` makes, of the
    settings and the model of the spec, whoever makes the vectors.
    """
    found = spec if isinstance(spec, EmbedSpec) else _spec(spec)
    choice = Choice.of(found, types=types, select=select, reembed_all=reembed_all, clean=clean)
    settings = settings or Settings.resolve()
    embedder = embeds(settings, found.model)
    run = _Run(os.fspath(input), os.fspath(output), found, choice, embedder, settings.load_max_line_bytes, progress)
    try:
        return run.whole()
    finally:
        embedder.close()


def embed_seed(manifest: AnyPath, **options: Any) -> EmbedSummary:
    """`embed_file` with the files and the spec that a seed manifest names."""
    seed = Seed.read(manifest)
    return embed_file(seed.input, seed.output, seed.spec, **options)


def _spec(given: Mapping[str, Any] | AnyPath) -> EmbedSpec:
    return EmbedSpec.of(dict(given)) if isinstance(given, Mapping) else EmbedSpec.read(given)


@dataclass
class _Waiting:
    """A line that lacks its vector still, or has it from an earlier run."""

    number: int
    line: bytes
    target: str
    text: str
    vector: Vector | None


class _Run:
    def __init__(
        self,
        input: str,
        output: str,
        spec: EmbedSpec,
        choice: Choice,
        embedder: Embeds,
        line_bytes_max: int,
        progress: Progress | None,
    ) -> None:
        self._input = input
        self._output = output
        self._spec = spec
        self._choice = choice
        self._embedder = embedder
        self._line_bytes_max = line_bytes_max
        self._progress = progress
        self._held: list[bytes | _Waiting] = []
        self._held_bytes = 0
        self._texts = 0
        self._records = self._selected = self._embedded = self._cleaned = 0

    def whole(self) -> EmbedSummary:
        if os.path.isdir(self._output) or not self._output or "\0" in self._output:
            raise BadRequest(f"output {self._output!r} is no name for a file", "Name a file.")
        with _opened(self._input) as lines, self._kept() as kept, _replacing(self._output) as out:
            for number, line in self._numbered(lines):
                self._take(number, line, kept)
                if self._texts >= self._embedder.texts_at_once or self._held_bytes >= _HELD_BYTES_MAX:
                    self._flush(out, kept)
            self._flush(out, kept)
        return EmbedSummary(
            self._input,
            self._output,
            self._records,
            self._selected,
            self._embedded,
            self._cleaned,
            self._choice.mode.value,
            self._spec.dimension,
            self._embedder.model,
        )

    @contextmanager
    def _kept(self) -> Iterator[KeptVectors | None]:
        if self._choice.mode is Mode.CLEAN:
            yield None
            return
        place = f"{os.path.realpath(self._output)}.kept"
        try:
            opened = KeptVectors(place, self._embedder, self._spec.dimension, self._choice.mode.value)
        except OSError as error:
            raise _unwritable(self._output, error) from None
        with opened as kept:
            try:
                yield kept
            except OmniError as error:
                if kept.count:
                    told = f"{kept.count} vectors are kept in '{place}'; the same command goes on from there."
                    error.hint = f"{error.hint} {told}".strip()
                raise

    def _numbered(self, lines: IO[bytes]) -> Iterator[tuple[int, bytes]]:
        number = 0
        while True:
            try:
                # Two bytes more: the line's end does not count.
                line = lines.readline(self._line_bytes_max + 2)
            except OSError as error:
                why = error.strerror or "its data is damaged"
                raise BadRequest(f"input '{self._input}' cannot be read after line {number}: {why}") from None
            if not line:
                return
            number += 1
            if len(line.rstrip(b"\r\n")) > self._line_bytes_max:
                raise self._wrong(number, f"is longer than {self._line_bytes_max} bytes")
            yield number, line

    def _take(self, number: int, line: bytes, kept: KeptVectors | None) -> None:
        """Decide about a line, and hold it until it is its turn to be written."""
        self._held_bytes += len(line)
        plain = line.removeprefix(_BOM) if number == 1 else line
        if not plain.strip():
            self._held.append(line)
            return
        self._records += 1
        type_, data = self._record(number, plain)
        if type_ is None or not self._choice.takes(type_, data):
            self._held.append(line)
            return
        self._selected += 1
        told = self._choice.types[type_]
        if kept is None:
            self._cleaned += 1
            with self._at(number):
                self._held.append(without_property(line, told.target))
            return
        with self._at(number):
            text = text_of(type_, told.fields, data)
        vector = kept.take(text)
        self._texts += vector is None
        self._held.append(_Waiting(number, line, told.target, text, vector))

    def _record(self, number: int, line: bytes) -> tuple[str | None, dict[str, Any]]:
        """The type and data of a line that may be chosen; no type where it cannot be."""
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise self._wrong(number, f"is not JSON: {error.msg}") from None
        if not isinstance(record, dict):
            raise self._wrong(number, "is no JSON object")
        type_ = record.get("type")
        if not isinstance(type_, str) or type_ not in self._choice.types:
            return None, {}
        data = record.get("data")
        if not isinstance(data, dict):
            raise self._wrong(number, "has no object 'data'")
        return type_, data

    def _flush(self, out: IO[bytes], kept: KeptVectors | None) -> None:
        waiting = [held for held in self._held if isinstance(held, _Waiting)]
        missing = [held for held in waiting if held.vector is None]
        if missing and kept is not None:
            texts, done = [held.text for held in missing], 0
            for vectors in self._embedder.document_batches(texts, self._spec.dimension):
                until = done + len(vectors)
                kept.add(texts[done:until], vectors)
                for held, vector in zip(missing[done:until], vectors, strict=True):
                    held.vector = vector
                done = until
        out.write(b"".join(h if isinstance(h, bytes) else self._finished(h) for h in self._held))
        self._embedded += len(waiting)
        self._held, self._held_bytes, self._texts = [], 0, 0
        if self._progress is not None:
            self._progress("cleaning" if kept is None else "embedding", self._cleaned or self._embedded)

    def _finished(self, held: _Waiting) -> bytes:
        value = orjson.dumps(held.vector, option=orjson.OPT_SERIALIZE_NUMPY).decode()
        with self._at(held.number):
            return with_property(held.line, held.target, value)

    @contextmanager
    def _at(self, number: int) -> Iterator[None]:
        """What is wrong with a line is told with its number."""
        try:
            yield
        except ValueError as error:
            raise self._wrong(number, str(error)) from None

    def _wrong(self, number: int, text: str) -> BadRequest:
        return BadRequest(f"{self._input}:{number}: the line {text}", "Nothing was written. Correct the line.")


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    try:
        stored = open(path, "rb")  # noqa: SIM115
    except FileNotFoundError:
        raise NotFound(f"input '{path}' not found", "Check the path.") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadRequest(f"input '{path}' cannot be read: {why}") from None
    with stored:
        compression = _COMPRESSIONS.get(Path(path).suffix)
        if compression is None:
            yield stored
        else:
            yield io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), compression))


@contextmanager
def _replacing(path: str) -> Iterator[IO[bytes]]:
    """A file that gets its name when the block ends well, and else is gone."""
    final = os.path.realpath(path)
    partial = f"{final}.partial"
    compression = _COMPRESSIONS.get(Path(final).suffix)
    try:
        with open(partial, "wb") as stored:
            if compression is None:
                yield stored
            else:
                with pa.CompressedOutputStream(pa.PythonFile(stored, mode="w"), compression) as packed:
                    yield packed
            if not stored.closed:
                stored.flush()
                os.fsync(stored.fileno())
        os.replace(partial, final)
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.remove(partial)


def _unwritable(path: str, error: OSError) -> OmniError:
    text = f"output '{path}' cannot be written: {error.strerror or error}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Unavailable(text, "Free some space and try again.", what="disk")
    return BadRequest(text, "Choose another output.")
