# SPDX-License-Identifier: Apache-2.0
"""Reading through a service: penstock.data.service."""

from . import service  # noqa: F401
