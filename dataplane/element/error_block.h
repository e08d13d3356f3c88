// SPDX-License-Identifier: Apache-2.0
// A block without leaves that takes an element's place, because there was an error at the element's
// index. MakeErrorBlock() (dataplane/memory/pool.h) makes such a block in a pool.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "penstock/element.h"

#pragma GCC visibility push(default)
namespace penstock {

// The maximum size of a message in bytes. Longer messages are cut, because people need only a line
// or two.
inline constexpr size_t kMaxErrorMessageBytes = 16 << 10;

// The maximum size of an error's block in bytes.
inline constexpr size_t kMaxErrorBlockBytes = kMaxErrorMessageBytes + 256;

// Returns the size of the block for `error`, in bytes.
size_t ErrorBlockBytes(const absl::Status& error);

// Writes the block. REQUIRES: `error` is not OK; `memory` is 64-byte aligned and has at least
// ErrorBlockBytes(error) bytes.
void WriteErrorBlock(absl::Span<std::byte> memory, const Identity& identity,
                     const absl::Status& error);

// Returns true if the element's block is an error block.
bool IsError(const Element& element);

// Returns the error that the block contains, or DataLoss if the block contains no readable status;
// never returns OK. REQUIRES: IsError(element).
absl::Status ReadErrorBlock(const Element& element);

}  // namespace penstock
#pragma GCC visibility pop
