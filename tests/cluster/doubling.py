# SPDX-License-Identifier: Apache-2.0
"""A function for workers that run Python."""


def doubled(x):
    return 2 * x
