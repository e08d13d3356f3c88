// SPDX-License-Identifier: Apache-2.0
// An element as bytes outside of a link, for a cache file or for the state of Scan. The bytes are
// the element's block (docs/element.md).
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "dataplane/memory/pool.h"
#include "penstock/element.h"
#include "penstock/spec.h"

namespace penstock {

// Returns the element's bytes, valid as long as the element.
std::string_view BytesOf(const Element& element);

// Makes an element of `spec` with a copy of the bytes. DataLoss if the bytes are not exactly the
// block of such an element.
absl::StatusOr<Element> ElementFromBytes(Pool& pool, std::string_view bytes, const Spec& spec);

}  // namespace penstock
