# SPDX-License-Identifier: Apache-2.0
"""How the programs of this folder begin and end: their options, their folder, their last line."""
import argparse
import pathlib
import shutil
import sys
import tempfile
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "soak"))
from fleet import Failed  # noqa: E402
from network import NotPermitted  # noqa: E402

NAME = pathlib.Path(sys.argv[0]).stem
SKIPPED = 77  # CTest's code for a skipped test


def parser(description, seeds=False):
    """Returns a parser with the common options; with `seeds`, also the number of seeds and the first one."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--bin", default="build/release/bin", type=lambda path: pathlib.Path(path).resolve())
    made.add_argument("--protocol", default="shm")
    made.add_argument("--keep", action="store_true", help="keep the logs, as after a failure")
    if seeds:
        made.add_argument("--seed", default=1, type=int)
        made.add_argument("--seeds", default=1, type=int, help="number of seeds, starting at --seed")
    return made


def conclude(args, run, **found):
    """Calls run(args, folder, found), prints the last line with what it found, and exits.

    `found` begins with these attributes. The folder stays if Failed is raised. NotPermitted skips the test.
    """
    found, why = types.SimpleNamespace(**found), ""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"penstock-{NAME}-"))
    try:
        run(args, folder, found)
    except Failed as failure:
        why = f" {failure}"
    except NotPermitted as because:
        shutil.rmtree(folder)
        print(f"{NAME}: left out: {because}")
        sys.exit(SKIPPED)
    if why or args.keep:
        print(f"{NAME}: logs in {folder}", flush=True)
    else:
        shutil.rmtree(folder)
    given = {name: getattr(args, name) for name in ("case", "protocol", "seed") if hasattr(args, name)}
    words = " ".join(f"{name}={value}" for name, value in {**given, **vars(found)}.items())
    print(f"{NAME}: {'failed' if why else 'ok'} {words}{why}")
    sys.exit(1 if why else 0)
