// SPDX-License-Identifier: Apache-2.0
// A block without leaves that stands in an element's place: an error at its
// index. MakeErrorBlock (dataplane/memory/pool.h) makes one in a pool.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "penstock/element.h"

namespace penstock {

// Messages longer than this are cut; a line or two is what a reader wants.
inline constexpr size_t kMaxErrorMessageBytes = 16 << 10;

// No block of an error has more bytes.
inline constexpr size_t kMaxErrorBlockBytes = kMaxErrorMessageBytes + 256;

// Bytes of the block for `error`.
size_t ErrorBlockBytes(const absl::Status& error);

// Writes it. REQUIRES: `error` is not OK; memory is 64 B aligned and
// ≥ ErrorBlockBytes(error).
void WriteErrorBlock(absl::Span<std::byte> memory, const Identity& identity,
                     const absl::Status& error);

// True for an element that is an error in its place.
bool IsError(const Element& element);

// The error that the block carries, never OK: DataLoss if it carries none that
// can be read. REQUIRES: IsError(element).
absl::Status ReadErrorBlock(const Element& element);

}  // namespace penstock
