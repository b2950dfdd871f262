"""Measures the service beside TorchRL's loggers, in one run: `python -m benchmarks [--quick]`."""
