// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "penstock/spec.h"

namespace penstock {

// The name of component `i` of an element in messages.
inline std::string ComponentName(const Spec& spec, size_t i) {
  std::string name = spec.LeafName(i);
  return name.empty() ? "the element" : name;
}

}  // namespace penstock
