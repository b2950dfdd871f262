"""The server program: settings, logs, locks, and the one place that wires things. Importing it loads nothing else."""
