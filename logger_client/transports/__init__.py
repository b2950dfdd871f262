"""The ways to a host. `base` is the seam that delivery knows; each other module is one way."""
