"""Ways a validation may go about its work; what it finds must not depend on them."""

from __future__ import annotations

import pytest
from write_scene import WAYS, take_way

from omnigraph.settings import Settings


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Settings:
    return take_way(monkeypatch, request.param)
