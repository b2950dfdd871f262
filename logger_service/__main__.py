"""`python -m logger_service`: the command `logger-service`."""

from __future__ import annotations

import sys

from logger_service.server.cli import main

if __name__ == "__main__":
    sys.exit(main())
