"""Files of records to embed, and what is in them afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SPEC = {
    "dimension": 4,
    "types": {
        "Doc": {"target": "vec", "fields": ["title", "body"]},
        "Tag": {"target": "tag_vec", "fields": ["name"]},
    },
}


def doc(title: Any, **data: Any) -> str:
    return json.dumps({"type": "Doc", "data": {"title": title, **data}})


def write(*lines: str, name: str = "in.jsonl") -> str:
    Path(name).write_bytes("".join(f"{line}\n" for line in lines).encode())
    return name


def lines_of(name: str = "out.jsonl") -> list[bytes]:
    return Path(name).read_bytes().splitlines(keepends=True)


def datas(name: str = "out.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line)["data"] for line in lines_of(name)]


def many(count: int) -> list[str]:
    return [doc(f"title {k}") for k in range(count)]
