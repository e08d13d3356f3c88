# SPDX-License-Identifier: Apache-2.0
"""Names that others replace. The old one works until the next release, with a DeprecationWarning."""

import warnings


def warn(old, new, stacklevel=3):
    """Warns the caller of the function that calls this."""
    warnings.warn(f"{old} is called {new} since Penstock 0.9", DeprecationWarning, stacklevel=stacklevel)


def find(module, name, names):
    """For a module's __getattr__: returns the attribute that replaces `name`. `names`: {old: new}."""
    if name not in names:
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
    warn(f"{module.__name__}.{name}", names[name], stacklevel=4)
    return getattr(module, names[name])


def keywords(given, names):
    """Returns the keyword arguments `given` with the new ones of `names`, {old: new}."""
    for old in names.keys() & given.keys():
        warn(f"argument {old}", names[old], stacklevel=5)
    return {names.get(name, name): value for name, value in given.items()}
