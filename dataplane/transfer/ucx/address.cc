// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/address.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace penstock::transfer::ucx {
namespace {

// FNV-1a: detects accidents, not attacks.
uint64_t SumOf(std::string_view bytes) {
  uint64_t sum = 0xcbf29ce484222325;
  for (const char c : bytes) sum = (sum ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return sum;
}

}  // namespace

std::string EncodeAddress(std::string_view address) {
  const uint64_t sum = SumOf(address);
  std::string bytes(reinterpret_cast<const char*>(&sum), sizeof sum);
  bytes += address;
  return absl::WebSafeBase64Escape(bytes);
}

absl::StatusOr<std::string> DecodeAddress(std::string_view text) {
  std::string bytes;
  uint64_t sum = 0;
  if (absl::WebSafeBase64Unescape(absl::string_view(text.data(), text.size()), &bytes) &&
      bytes.size() > sizeof sum) {
    std::memcpy(&sum, bytes.data(), sizeof sum);
    bytes.erase(0, sizeof sum);
    if (SumOf(bytes) == sum) return bytes;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(text), "' is not the address of a worker that offers 'ucx'"));
}

}  // namespace penstock::transfer::ucx
