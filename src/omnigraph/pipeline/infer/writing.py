"""The draft as the text of `schema.pg` and `pipeline.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from omnigraph.pipeline.infer.draft import Draft, EdgeDraft, NodeDraft, PropertyDraft

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*( (is|not|null|as) ?[A-Za-z_]*)*")
_WORDS = frozenset(["true", "false", "yes", "no", "on", "off", "y", "n", "null", "none"])
_WIDTH_MAX = 60


def schema_text(draft: Draft, sample: int | None = None) -> str:
    """The schema, with what it was concluded from in comments."""
    lines = ["// A draft made by omnigraph infer. Read the comments, change what was guessed wrong, then delete them."]
    if sample is not None:
        lines.append(f"// Only the first {sample} rows of each input were read: further rows may not fit.")
    for node in draft.nodes:
        lines += ["", *(f"// {_line(text)}" for text in node.comments), *_body(f"node {node.name}", node.properties)]
    for edge in draft.edges:
        head = f"edge {edge.name}: {edge.src_type} -> {edge.dst_type}"
        lines += ["", *(f"// {_line(text)}" for text in edge.comments)]
        lines += _body(head, edge.properties) if edge.properties else [head]
    return "\n".join(lines) + "\n"


def _body(head: str, properties: Sequence[PropertyDraft]) -> Iterator[str]:
    yield f"{head} {{"
    written = [f"  {p.name}: {p.type}{' @key' if p.is_key else ''}" for p in properties]
    width = max((len(text) for text in written if len(text) <= _WIDTH_MAX), default=0)
    for text, found in zip(written, properties, strict=True):
        yield f"{text:<{width}}  // {_line(found.comment)}" if found.comment else text
    yield "}"


def _line(text: str) -> str:
    return "".join(c if c.isprintable() else "�" for c in text)


def pipeline_text(draft: Draft, graph: str) -> str:
    """The pipeline that loads every row the draft was made from."""
    mapped = [node for node in draft.nodes if node.source is not None]
    lines = [
        "# A draft made by omnigraph infer, to be read together with schema.pg:",
        f"#   omnigraph init {graph} --schema schema.pg",
        "#   omnigraph pipeline validate pipeline.yaml",
        "#   omnigraph pipeline run pipeline.yaml",
        "version: 1",
        f"target: {{graph: {scalar(graph)}, mode: merge}}",
        "sources:",
    ]
    for source in draft.sources:
        lines += [f"  {scalar(source.name)}:", f"    format: {source.format}", f"    path: {_paths(source.paths)}"]
        if source.options:
            lines.append(f"    options: {_mapping(source.options)}")
    lines += ["nodes:", *(line for node in mapped for line in _node(node))] if mapped else []
    edges = [edge for edge in draft.edges if edge.source is not None]
    lines += ["edges:", *(line for edge in edges for line in _edge(edge))] if edges else []
    return "\n".join(lines) + "\n"


def _paths(paths: Sequence[str]) -> str:
    return scalar(paths[0]) if len(paths) == 1 else f"[{', '.join(map(scalar, paths))}]"


def _mapping(members: Sequence[tuple[str, str]]) -> str:
    told = (f"{name}: {value if value == 'true' else scalar(value)}" for name, value in members)
    return f"{{{', '.join(told)}}}"


def _node(node: NodeDraft) -> Iterator[str]:
    yield f"  - type: {scalar(node.name)}"
    yield f"    from: {scalar(node.source or '')}"
    yield from _map(node.properties)


def _edge(edge: EdgeDraft) -> Iterator[str]:
    yield f"  - type: {scalar(edge.name)}"
    yield f"    from: {scalar(edge.source or '')}"
    yield f"    src: {scalar(edge.src)}"
    yield f"    dst: {scalar(edge.dst)}"
    if edge.where:
        yield f"    where: {scalar(edge.where)}"
    if edge.properties:
        yield from _map(edge.properties)


def _map(properties: Sequence[PropertyDraft]) -> Iterator[str]:
    if not properties:
        yield "    map: {}"
        return
    yield "    map:"
    for found in properties:
        yield f"      {scalar(found.name)}: {scalar(found.expression)}"


def scalar(text: str) -> str:
    """A text of YAML: bare where nothing else could be meant, else in double quotes."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS and len(text) < 100:
        return text
    return '"' + "".join(_escaped(c) for c in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable() and character not in "\ufeff\ufffe\uffff":
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
