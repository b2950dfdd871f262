"""The concrete backends a run is written to."""
