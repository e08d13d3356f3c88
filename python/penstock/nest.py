# SPDX-License-Identifier: Apache-2.0
"""Nests: tuples, dicts and named tuples of leaves, as in tf.data.

The engine knows only tuples, and dicts with sorted keys. A `like` is a nest that gives the Python types of the engine's
nest; its leaves do not matter.
"""


def is_namedtuple(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


def is_nest(value):
    return isinstance(value, (tuple, dict))


def map_leaves(function, value):
    """Returns the same nest with function(leaf) for each leaf, depth first, and dicts in the order of their keys."""
    if isinstance(value, dict):
        done = {key: map_leaves(function, value[key]) for key in sorted(value)}
        return _dict_like(value, done)
    if isinstance(value, tuple):
        return _tuple_like(value, [map_leaves(function, member) for member in value])
    return function(value)


def leaves(value):
    """Returns all leaves, depth first, and dicts in the order of their keys. This is the engine's order."""
    found = []
    map_leaves(found.append, value)
    return found


def named_leaves(value, name=""):
    """Returns (name, leaf) for each leaf, in the order of `leaves`. The name is its index expression after the nest,
    "['x'][0]"."""
    if isinstance(value, dict):
        members = [(f"[{key!r}]", value[key]) for key in sorted(value)]
    elif is_namedtuple(value):
        members = [(f".{field}", getattr(value, field)) for field in value._fields]
    elif isinstance(value, tuple):
        members = [(f"[{i}]", member) for i, member in enumerate(value)]
    else:
        return [(name, value)]
    return [found for step, member in members for found in named_leaves(member, name + step)]


def plain(value):
    """Returns the engine's nest: tuples and dicts. Named tuples become tuples."""
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"keys of dicts in elements must be strings, not {key!r}")
        return {key: plain(member) for key, member in value.items()}
    if isinstance(value, tuple):
        return tuple(plain(member) for member in value)
    return value


def as_like(like, value):
    """Returns the engine's nest `value` with the Python types of `like`, as far as the nests agree."""
    if isinstance(value, dict):
        if not isinstance(like, dict) or like.keys() != value.keys():
            like = dict.fromkeys(value)
        return _dict_like(like, {key: as_like(like[key], value[key]) for key in like})
    if isinstance(value, tuple):
        if not isinstance(like, tuple) or len(like) != len(value):
            like = (None,) * len(value)
        return _tuple_like(like, [as_like(a, b) for a, b in zip(like, value)])
    return value


def packer(like):
    """Returns a function from the list of an element's leaves, in the order of `leaves`, to the nest."""
    if not is_nest(like):
        return lambda values: values[0]
    if type(like) is tuple and not any(map(is_nest, like)):
        return tuple
    if type(like) is dict and not any(map(is_nest, like.values())):
        places = {key: i for i, key in enumerate(sorted(like))}
        items = [(key, places[key]) for key in like]
        return lambda values: {key: values[i] for key, i in items}

    def pack(values):
        rest = iter(values)
        return map_leaves(lambda _: next(rest), like)

    return pack


def assert_same(one, other, what):
    """Raises ValueError unless both nests have the same members."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            assert_same(one[key], other[key], what)
    elif isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        for a, b in zip(one, other):
            assert_same(a, b, what)
    elif is_nest(one) or is_nest(other):
        raise ValueError(f"{what}: {one!r} and {other!r} have different structures")


def leaves_to(like, nested, what):
    """Returns the values of `nested` at the leaves of `like`, in the order of `leaves`. A value may itself be a nest."""
    if isinstance(like, dict):
        if not isinstance(nested, dict) or nested.keys() != like.keys():
            raise ValueError(f"{what} must have the same keys as the elements, {sorted(like)}, not {nested!r}")
        return [value for key in sorted(like) for value in leaves_to(like[key], nested[key], what)]
    if isinstance(like, tuple):
        if not isinstance(nested, tuple) or len(nested) != len(like):
            raise ValueError(f"{what} must be a tuple of {len(like)}, like the elements, not {nested!r}")
        return [value for a, b in zip(like, nested) for value in leaves_to(a, b, what)]
    return [nested]


def _tuple_like(like, members):
    return type(like)(*members) if is_namedtuple(like) else tuple(members)


def _dict_like(like, members):
    ordered = {key: members[key] for key in like}
    return ordered if type(like) is dict else type(like)(ordered)
