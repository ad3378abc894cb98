"""What the helpers of the machine find wrong is told as fully as what a test does."""

import pytest

pytest.register_assert_rewrite("state_actions", "state_checks", "state_life", "state_verbs")
