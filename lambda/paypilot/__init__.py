"""PayPilot's decision service."""

__version__ = "1.0.0"
