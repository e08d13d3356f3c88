# SPDX-License-Identifier: Apache-2.0
"""Names that were replaced. The old ones work until the next release, with a DeprecationWarning."""

import warnings


def warn(old, new, stacklevel=3):
    """Warns the caller of the function that calls this."""
    warnings.warn(f"{old} is called {new} since Penstock 0.9", DeprecationWarning, stacklevel=stacklevel)


def find(module, name, names):
    """Implements a module's __getattr__: returns the attribute that replaces `name`. `names`: {old: new}."""
    if name not in names:
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
    warn(f"{module.__name__}.{name}", names[name], stacklevel=4)
    return getattr(module, names[name])


def keywords(given, names):
    """Returns the keyword arguments `given`, with old names replaced. `names`: {old: new}. None means not given."""
    new = {name: value for name, value in given.items() if name not in names}
    for old in names.keys() & given.keys():
        warn(f"argument {old}", names[old], stacklevel=5)
        if given[old] is None:
            continue
        if new.get(names[old]) is not None:
            raise TypeError(f"{old} and {names[old]} are the same argument; give {names[old]} only")
        new[names[old]] = given[old]
    return new
