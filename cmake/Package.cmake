# SPDX-License-Identifier: Apache-2.0
# One library out of all components, static and shared, and its package.
