# SPDX-License-Identifier: Apache-2.0
"""Functions for workers that run Python."""
import os

import numpy as np


def doubled(x):
    return 2 * x


def secrets_seen(x):
    """Returns how many variables with credentials there are, plus 100 if the variable with the data's folder is set."""
    seen = sum(name.startswith(("AWS_", "PENSTOCK_")) for name in os.environ)
    return np.int64(seen + 100 * ("MY_DATA" in os.environ))
