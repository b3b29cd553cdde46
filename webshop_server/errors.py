"""Every error that a user of `webshop_server` can cause.

* `ShopError` - the base of them all, so that one `except` catches what is ours
* `CatalogueError` - a catalogue file or its index that cannot be used
* `ImportProblem` - the files to import cannot be read at all (a single bad record is only counted)
* `SettingsError` - a setting that does not exist, or a value that it does not allow
* `ArgumentError` - an argument of a function or a command breaks a rule
* `SessionError` - a session that does not exist, or a call that it does not allow any more
"""

from __future__ import annotations


class ShopError(Exception):
    """The base of all errors of this package."""


class CatalogueError(ShopError, OSError):
    """A catalogue file or its search index cannot be used; the message says which, why, and what to do."""


class ImportProblem(ShopError, ValueError):
    """The files to import cannot be read; the message names the file, the place and the reason."""


class SettingsError(ShopError, ValueError):
    """A setting does not exist or does not allow the value; the message says name, rule and value."""


class ArgumentError(ShopError, ValueError):
    """An argument breaks a rule; the message says which argument, which rule and which value."""


class SessionError(ShopError, RuntimeError):
    """A session does not exist, or it is over and the call came too late."""
