"""How a stored column says which property it is, whatever the property is called."""

from __future__ import annotations

# The member of an Arrow field's metadata that holds the id of its property.
PROPERTY_ID = "omnigraph:property_id"
