#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how soon the farm of the simulator finds each bug of this folder.

    find.py [--work FOLDER] [--minutes 10] [--jobs 2] [PATCH…]
    find.py --check    # only: does each patch still apply?

Copies the tracked files into FOLDER, and builds the simulator there with each patch in turn, so that only what a patch
changes is built again. First the farm must find nothing for a minute without a patch: otherwise a failure would not show a bug.
Prints a line for each bug. Exit code 1: a bug was not found, or the tree without a patch fails.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PRESET = "release"
TARGET = "penstock_simulate_program"
FAILURE = "failure after "  # begins the farm's line for a run that failed; the seconds follow


def copy_tree(into):
    """Leaves files alone that are the same, so that a second call builds little."""
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        source, target = ROOT / name, into / name
        if not source.is_file() or (target.is_file() and target.read_bytes() == source.read_bytes()):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def apply(patch, tree, *options):
    # `tree` may be in a folder of a repository, which git must not take for the one to patch.
    subprocess.run(["git", "apply", *options, patch], cwd=tree, check=True,
                   env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)})


def applies(patch):
    """Returns whether the patch applies to this tree. If not, git says why."""
    try:
        apply(patch, ROOT, "--check")
    except subprocess.CalledProcessError:
        return False
    return True


def build(tree, jobs):
    """Returns the program."""
    for command in (["cmake", "--preset", PRESET],
                    ["cmake", "--build", "--preset", PRESET, "--target", TARGET, "--parallel", str(jobs)]):
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return tree / "build" / PRESET / "bin" / "penstock-simulate"


def first_failure(tree, out, minutes, jobs):
    """Returns the farm's line for the first run that fails; None if no run fails within the time."""
    program = build(tree, jobs)
    corpus = sorted((tree / "tests/simulator/corpus").glob("*.scenario"))
    farm = subprocess.Popen([program, "simulate", "--farm", *corpus, "--minutes", str(minutes), "--jobs", str(jobs), "--out", out],
                            stdout=subprocess.PIPE, text=True)
    failure = next((line.strip() for line in farm.stdout if line.startswith(FAILURE)), None)
    if failure is not None:
        farm.terminate()
    if farm.wait() != 0 and failure is None:
        sys.exit(f"the farm could not run: {' '.join(map(str, farm.args))}")
    return failure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patches", nargs="*", type=pathlib.Path, help="all of this folder, unless they are given")
    parser.add_argument("--work", type=pathlib.Path, help="folder for the copy and the build, which stay; otherwise a temporary one")
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--check", action="store_true", help="build nothing; exit code 1 if a patch does not apply")
    given = parser.parse_args()
    patches = [patch.resolve() for patch in given.patches] or sorted(HERE.glob("*.patch"))
    if given.check:
        return 0 if all([applies(patch) for patch in patches]) else 1
    with tempfile.TemporaryDirectory() as temporary:
        tree = (given.work or pathlib.Path(temporary)).resolve() / "tree"
        copy_tree(tree)
        failure = first_failure(tree, tree.parent / "failures" / "none", 1, given.jobs)
        if failure is not None:
            sys.exit(f"without a patch: {failure}")
        missed = 0
        for patch in patches:
            apply(patch, tree)
            failure = first_failure(tree, tree.parent / "failures" / patch.stem, given.minutes, given.jobs)
            apply(patch, tree, "--reverse")
            missed += failure is None
            seconds = "not found" if failure is None else f"found in {failure.removeprefix(FAILURE)}"
            print(f"{patch.stem}: {seconds}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
