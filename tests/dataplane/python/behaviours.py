# SPDX-License-Identifier: Apache-2.0
"""Functions that do to their process what users' functions do. PENSTOCK_TEST_FOLDER is the test's own folder."""
import os
import signal

import numpy as np

FOLDER = os.environ["PENSTOCK_TEST_FOLDER"]


def same(x):
    return x


def pid(x):
    return np.int64(os.getpid())


def dies_once(x):
    try:
        os.mkdir(f"{FOLDER}/died")
    except FileExistsError:
        return x
    os._exit(1)


def hangs(x):
    with open(f"{FOLDER}/hangs", "wb") as fifo:  # waits until the test reads
        fifo.write(b"!")
    while True:
        signal.pause()
