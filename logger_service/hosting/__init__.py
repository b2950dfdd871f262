"""The host of runs: accepts, journals, and applies what was accepted to the runs' backends."""
