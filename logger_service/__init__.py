"""Logger Service: the contract, the host and the server. Importing it loads nothing else."""

__version__ = "0.1.0.dev0"
