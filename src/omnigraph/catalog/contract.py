"""The accepted schema contract: three files that must tell the same story.

Holds for every AcceptedSchema:
  1. The source compiles to the recorded shape; the compiled schema is the recorded one, byte for byte in compact JSON.
  2. A source edit that changes no meaning (comments, order, layout, rename hints) keeps the contract.
Pure functions: whoever calls reads and writes the files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from omnigraph.base.errors import Conflict, SourceError
from omnigraph.catalog.build import compile_source
from omnigraph.catalog.catalog import Catalog
from omnigraph.catalog.identity import assign
from omnigraph.catalog.ir import IrError, SchemaIr, compact_json, from_json, shape_json, to_json
from omnigraph.catalog.ir_read import Members, load_json

STATE_FORMAT_VERSION = 2

INCOMPLETE = "schema contract is incomplete"
SOURCE_CHANGED = "current _schema.pg no longer matches the accepted compiled schema"
IR_CHANGED = "accepted compiled schema does not match the recorded schema state"
IR_INVALID = "accepted compiled schema is invalid"
STATE_INVALID = "recorded schema state is invalid"
COMMIT_DIFFERS = "accepted compiled schema is not the one that the newest schema commit of main recorded"
TABLES_DIFFER = "accepted compiled schema does not match the tables of the graph"


@dataclass(frozen=True)
class SchemaState:
    """What `__schema_state.json` records; `graph_commit_id` names the commit that put a staged schema in force.

    A source that has the hash is the accepted one, byte for byte, and need not be compiled to know its shape. Graphs of
    earlier releases have none.
    """

    schema_shape_hash: str
    schema_ir_hash: str
    schema_identity_domain: str
    graph_commit_id: str | None = None
    schema_source_hash: str | None = None


@dataclass(frozen=True)
class AcceptedSchema:
    source: str
    ir: SchemaIr
    ir_json: bytes
    state_json: bytes
    shape_hash: str
    ir_hash: str
    graph_commit_id: str | None = None

    @property
    def catalog(self) -> Catalog:
        return self.ir.catalog

    @property
    def source_bytes(self) -> bytes:
        return self.source.encode()


def accept(
    source: str,
    domain: str,
    previous: SchemaIr | None = None,
    *,
    file: str | None = None,
    graph_commit_id: str | None = None,
) -> AcceptedSchema:
    """The contract of a schema text: of a new graph, or following `previous`, whose ids and domain it keeps."""
    ir = assign(compile_source(source, file), previous, domain)
    ir_json = to_json(ir)
    shape_hash = hash_bytes(shape_json(ir.catalog))
    ir_hash = hash_bytes(ir_json)
    source_hash = hash_bytes(source.encode())
    state = SchemaState(shape_hash, ir_hash, ir.schema_identity_domain, graph_commit_id, source_hash)
    return AcceptedSchema(source, ir, ir_json, write_state(state), shape_hash, ir_hash, graph_commit_id)


def check(source: bytes | None, ir: bytes | None, state: bytes | None) -> AcceptedSchema:
    """The contract the three files make, or a Conflict that says which of them broke it."""
    if source is None or ir is None or state is None:
        given = {"_schema.pg": source, "_schema.ir.json": ir, "__schema_state.json": state}
        _refuse(INCOMPLETE, f"Missing: {', '.join(name for name, data in given.items() if data is None)}.")
    recorded = read_state(state)
    compiled, ir_hash = _read_compiled(ir)
    shape_hash = hash_bytes(shape_json(compiled.catalog))
    found = (shape_hash, ir_hash, compiled.schema_identity_domain)
    if found != (recorded.schema_shape_hash, recorded.schema_ir_hash, recorded.schema_identity_domain):
        _refuse(IR_CHANGED, "Restore _schema.ir.json and __schema_state.json as the last schema apply wrote them.")
    is_untouched = hash_bytes(source) == recorded.schema_source_hash
    text = source.decode("utf-8") if is_untouched else _matching_source(source, shape_hash)
    return AcceptedSchema(text, compiled, ir, state, shape_hash, ir_hash, recorded.graph_commit_id)


def check_tables(catalog: Catalog, live_table_keys: Iterable[str]) -> None:
    """Every type has its table in the manifest and every live table its type, or a Conflict names the difference."""
    declared, live = {table.table_key for table in catalog.tables()}, set(live_table_keys)
    if declared != live:
        without_table = ", ".join(sorted(declared - live)) or "none"
        without_type = ", ".join(sorted(live - declared)) or "none"
        _refuse(TABLES_DIFFER, f"Types without a table: {without_table}; tables without a type: {without_type}.")


def check_recorded(ir_hash: str, recorded: str | None, graph_commit_id: str) -> None:
    """The compiled schema is the one whose hash the commit names, if it names one; else a Conflict."""
    if recorded not in (None, ir_hash):
        _refuse(COMMIT_DIFFERS, f"Restore the three schema files as schema commit {graph_commit_id} left them.")


def hash_bytes(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def write_state(state: SchemaState) -> bytes:
    members: dict[str, object] = {
        "format_version": STATE_FORMAT_VERSION,
        "schema_shape_hash": state.schema_shape_hash,
        "schema_ir_hash": state.schema_ir_hash,
        "schema_identity_domain": state.schema_identity_domain,
    }
    if state.graph_commit_id is not None:
        members["graph_commit_id"] = state.graph_commit_id
    if state.schema_source_hash is not None:
        members["schema_source_hash"] = state.schema_source_hash
    return compact_json(members)


def read_state(data: bytes) -> SchemaState:
    try:
        members = Members.of(load_json(data, "schema state"), "schema state")
        version = members.take("format_version", int)
        if version != STATE_FORMAT_VERSION:
            raise IrError(f"schema state has version {version}, this release reads {STATE_FORMAT_VERSION}")
        found = SchemaState(
            members.take("schema_shape_hash", str),
            members.take("schema_ir_hash", str),
            members.take("schema_identity_domain", str),
            members.take("graph_commit_id", str) if "graph_commit_id" in members.left else None,
            members.take("schema_source_hash", str) if "schema_source_hash" in members.left else None,
        )
        members.done()
    except IrError as why:
        _refuse(STATE_INVALID, str(why))
    return found


def _read_compiled(data: bytes) -> tuple[SchemaIr, str]:
    try:
        compiled = from_json(data)
        # Hashing what was read, not the bytes, lets a file that was only laid out anew still match.
        return compiled, hash_bytes(to_json(compiled))
    except (IrError, UnicodeEncodeError) as why:
        _refuse(IR_INVALID, str(why))


def _matching_source(source: bytes, shape_hash: str) -> str:
    hint = "Restore the accepted source, or bring the change in with schema apply."
    try:
        text = source.decode("utf-8")
        compiled = compile_source(text, "_schema.pg")
    except UnicodeDecodeError:
        _refuse(SOURCE_CHANGED, f"_schema.pg is not UTF-8. {hint}")
    except SourceError as why:
        _refuse(SOURCE_CHANGED, f"{why.describe()}. {hint}")
    if hash_bytes(shape_json(compiled)) != shape_hash:
        _refuse(SOURCE_CHANGED, hint)
    return text


def _refuse(text: str, hint: str) -> NoReturn:
    raise Conflict(text, hint)
