# SPDX-License-Identifier: Apache-2.0
"""Generators for the cases of FromGenerator."""


def numbers():
    for i in range(120):
        yield i * i, [f"{i}"] * (i % 4)


def nothing():
    return ()
