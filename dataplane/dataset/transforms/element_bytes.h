// SPDX-License-Identifier: Apache-2.0
// An element as bytes outside of a link (a cache's file, Scan's state): its
// block as docs/element.md lays it out.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "dataplane/memory/pool.h"
#include "penstock/element.h"
#include "penstock/spec.h"

namespace penstock {

// Valid as long as the element.
std::string_view BytesOf(const Element& element);

// An element of `spec` with a copy of the bytes. DataLoss for bytes that are
// not exactly the block of such an element.
absl::StatusOr<Element> ElementFromBytes(Pool& pool, std::string_view bytes, const Spec& spec);

}  // namespace penstock
