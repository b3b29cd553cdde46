"""Version and address, in a file of their own so that the build reads them without importing the package."""

__version__ = "0.1.0"

PROJECT_URL = ""
"""Address of the project; empty until there is one. Every text that shows an address takes it from here."""
