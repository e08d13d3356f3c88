# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.experimental's names."""

from ....distribute import ValueContext  # noqa: F401
