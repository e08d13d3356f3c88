// SPDX-License-Identifier: Apache-2.0
// Bytes from a link over a network: a decoded message encodes to bytes that decode to the same
// message.
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dataplane/transfer/codec.h"
#include "dataplane/transfer/message.h"
#include "penstock/check.h"

namespace {

// A decompressed body has the announced length; any other body is refused.
void TakeForCompressed(absl::Span<const std::byte> body) {
  using namespace penstock::transfer;
  absl::StatusOr<CompressedPrefix> prefix = ReadCompressedPrefix(body);
  if (!prefix.ok() || prefix->bytes > size_t{1} << 20) return;
  std::vector<std::byte> whole(prefix->bytes);
  Decompress(*prefix, body, absl::MakeSpan(whole)).IgnoreError();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock::transfer;
  TakeForCompressed({reinterpret_cast<const std::byte*>(data), size});
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  absl::StatusOr<Message> message = Decode(bytes);
  if (!message.ok()) return 0;
  std::string once = std::visit([](const auto& its) { return Encode(its); }, *message);
  absl::StatusOr<Message> again = Decode(once);
  PENSTOCK_CHECK(again.ok());
  PENSTOCK_CHECK(std::visit([](const auto& its) { return Encode(its); }, *again) == once);
  return 0;
}
