"""The compiled schema and its JSON form, written and read; `from_json(to_json(ir)) == ir`."""

from omnigraph.catalog.ir_read import IrError, from_json
from omnigraph.catalog.ir_write import IR_VERSION, SchemaIr, compact_json, shape_json, to_json

__all__ = ["IR_VERSION", "IrError", "SchemaIr", "compact_json", "from_json", "shape_json", "to_json"]
