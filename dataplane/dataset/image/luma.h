// SPDX-License-Identifier: Apache-2.0
// The grey value of a colour, weighted as in ITU-R BT.601: the same as JPEG's luma.
#pragma once

#include <cstdint>

namespace penstock {

template <class T>
T Luma(T red, T green, T blue) {
  return static_cast<T>((299 * uint32_t{red} + 587 * uint32_t{green} + 114 * uint32_t{blue} + 500) /
                        1000);
}

}  // namespace penstock
