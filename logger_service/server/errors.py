"""Why a server does not start."""

from __future__ import annotations


class StartError(Exception):
    """The server cannot start. The text is one line for the operator, who sees nothing else; the exit status is 2."""
