"""How large the fault tests are: small by default, in full with `make faults`."""

from __future__ import annotations

import os

FULL = os.environ.get("FAULTS_FULL") == "1"


def sized(usual: int, full: int) -> int:
    """Returns the size for this session."""
    return full if FULL else usual
