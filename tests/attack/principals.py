# SPDX-License-Identifier: Apache-2.0
"""Principals of an attacked cluster: its workers, its honest trainers, its operator, and an attacker who is a trainer too."""
import os
import pathlib
import subprocess

VARIABLE = "PENSTOCK_TOKEN_FILE"
PAGES = "token-of-the-status-pages"
ROLES = {"worker": "worker", "trainer": "trainer", "operator": "operator", "attacker": "trainer"}


class Principals:
    """`auth_file`, and the `environments` that give a process its principal's token, and to servers the token of their pages."""

    def __init__(self, penstock, folder):
        self.auth_file = folder / "auth.toml"
        self.environments = {}
        sections = []
        for name, role in ROLES.items():
            token = folder / f"{name}.token"
            made = subprocess.run([penstock, "auth", "token", token], capture_output=True, text=True, check=True)
            sections.append(f'[{name}]\nrole = "{role}"\n{made.stdout}')
            self.environments[name] = {VARIABLE: str(token)}
        for role in ("dispatcher", "worker"):
            self.environments.setdefault(role, {})["PENSTOCK_METRICS_TOKEN"] = PAGES
        self.auth_file.write_text("\n".join(sections))


def own_token():
    """Returns the token that this process was given, or None."""
    file = os.environ.get(VARIABLE)
    return pathlib.Path(file).read_text().strip() if file else None
