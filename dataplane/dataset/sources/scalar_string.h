// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "dataplane/memory/pool.h"
#include "penstock/element.h"

namespace penstock {

// Makes an element that is one scalar string.
inline absl::StatusOr<Element> ScalarString(Pool& pool, std::string_view value) {
  static const Spec* const spec = new Spec(Bytes());
  const uint64_t offsets[] = {0, value.size()};
  const Tensor tensor(kString, {}, offsets, value.data());
  return MakeElement(pool, {&tensor, 1}, *spec);
}

}  // namespace penstock
