// SPDX-License-Identifier: Apache-2.0
// Bytes from a link over a network: whatever decodes encodes to what decodes to the same.
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "dataplane/transfer/message.h"
#include "penstock/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock::transfer;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  absl::StatusOr<Message> message = Decode(bytes);
  if (!message.ok()) return 0;
  std::string once = std::visit([](const auto& its) { return Encode(its); }, *message);
  absl::StatusOr<Message> again = Decode(once);
  PENSTOCK_CHECK(again.ok());
  PENSTOCK_CHECK(std::visit([](const auto& its) { return Encode(its); }, *again) == once);
  return 0;
}
