"""The decision function. `__version__` is the one version of everything that this repository releases."""

__version__ = "1.0.0"
