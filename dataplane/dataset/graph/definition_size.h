// SPDX-License-Identifier: Apache-2.0
// How large a definition may be. The parts of a definition take many times their bytes once they
// are parsed, so they are counted in the bytes, before anything is built from them.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace penstock {

// The sum over all functions of a definition. Real ones have hundreds.
inline constexpr int64_t kMostOperations = 65'536;
// Messages of dataset.proto: operations, attributes, specs, tensors. Also unknown strings, since
// Protobuf keeps them.
inline constexpr int64_t kMostDefinitionParts = int64_t{1} << 19;
// Names and other strings in attributes, such as the list of a source's files.
inline constexpr int64_t kMostStrings = int64_t{1} << 22;
// Numbers in lists: attributes, shapes, lengths of strings.
inline constexpr int64_t kMostNumbers = int64_t{1} << 24;
// Numbers that are not in lists: a message of dataset.proto has at most 5. Also unknown numbers.
inline constexpr int64_t kMostSingleNumbers = 8 * kMostDefinitionParts;

// InvalidArgument names the limit that the definition exceeds, or says that it contains a group: no
// definition has one, and Protobuf would keep it. Other bytes that are not a definition are no
// error here: ParseDataset() describes that.
absl::Status CheckSize(std::string_view definition);

}  // namespace penstock
