// SPDX-License-Identifier: Apache-2.0
// Parses the header Content-Range (RFC 9110 §14.4) in bytes.
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

// Returns nullopt unless the value is a range of bytes of a known size: "bytes 0-99/200" is one,
// "bytes */200" and "bytes 0-99/*" are not.
std::optional<ContentRange> ParseContentRange(std::string_view value);

}  // namespace penstock::remote
