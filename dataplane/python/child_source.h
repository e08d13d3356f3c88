// SPDX-License-Identifier: Apache-2.0
// The program that a Python process runs.
#pragma once

#include <string_view>

namespace penstock::python_host {

extern const std::string_view kChildSource;  // child.py

}  // namespace penstock::python_host
