// SPDX-License-Identifier: Apache-2.0
// Grey out of colours, as ITU-R BT.601 weighs them: what JPEG's own luma is.
#pragma once

#include <cstdint>

namespace penstock {

template <class T>
T Luma(T red, T green, T blue) {
  return static_cast<T>((299 * uint32_t{red} + 587 * uint32_t{green} + 114 * uint32_t{blue} + 500) /
                        1000);
}

}  // namespace penstock
