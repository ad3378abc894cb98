# pyarrow ships no types; everything in it is Any here.
from typing import Any

def __getattr__(name: str) -> Any: ...
