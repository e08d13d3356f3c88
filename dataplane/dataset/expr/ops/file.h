// SPDX-License-Identifier: Apache-2.0
// Functions that read whole files.
#pragma once

namespace penstock {

inline constexpr char kReadFile[] = "ReadFile";

}  // namespace penstock
