"""The errors that a user of `webshop_server` can cause.

* `ShopError` - the base class
* `CatalogueError` - a catalogue file or its index that cannot be used
* `ImportProblem` - the files to import cannot be read (single invalid records are skipped and counted)
* `SettingsError` - an unknown setting, or an invalid value
* `ArgumentError` - an invalid argument of a function or a command
* `StateFileError` - the file of sessions and orders, or the log of a session, cannot be used
* `SessionError` - an unknown session, or an action after its end
"""

from __future__ import annotations


class ShopError(Exception):
    """The base class of the errors of this package."""


class CatalogueError(ShopError, OSError):
    """A catalogue file or its search index cannot be used; the message says which, why, and what to do."""


class ImportProblem(ShopError, ValueError):
    """The files to import cannot be read; the message names the file, the place and the reason."""


class SettingsError(ShopError, ValueError):
    """A setting does not exist or does not allow the value; the message says name, rule and value."""


class ArgumentError(ShopError, ValueError):
    """An argument breaks a rule; the message says which argument, which rule and which value."""


class StateFileError(ShopError, OSError):
    """The file of sessions and orders, or the log of a session, cannot be used; the message says which and why."""


class SessionError(ShopError, RuntimeError):
    """A session does not exist, or it is over."""
