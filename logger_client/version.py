"""Who this client is."""

from logger_service import __version__ as __version__

CLIENT = f"logger-client-python/{__version__}"
"""What it calls itself to servers."""
