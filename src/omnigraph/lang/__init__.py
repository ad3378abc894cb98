"""The two languages: `pg` for schemas, `gq` for queries and mutations."""
