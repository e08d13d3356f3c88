#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Removes the file that follows -o in the arguments, then runs the arguments as a command.
previous=
for argument in "$@"; do
  if [ "$previous" = -o ]; then rm -f "$argument"; fi
  previous=$argument
done
exec "$@"
