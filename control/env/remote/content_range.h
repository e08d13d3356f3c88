// SPDX-License-Identifier: Apache-2.0
// Parses the header Content-Range (RFC 9110 §14.4) for ranges whose unit is bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock::remote {

struct ContentRange {
  int64_t begin = 0;
  int64_t end = 0;   // one after the last byte
  int64_t size = 0;  // of the whole file
};

// Returns nullopt unless the value is a range of bytes in a file of known size: "bytes 0-99/200" is
// such a range; "bytes */200" and "bytes 0-99/*" are not.
std::optional<ContentRange> ParseContentRange(std::string_view value);

}  // namespace penstock::remote
