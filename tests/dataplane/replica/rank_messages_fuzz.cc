// SPDX-License-Identifier: Apache-2.0
// Bytes from another rank: a decoded message encodes to bytes that decode to the same message.
#include <cstdint>
#include <string_view>

#include "dataplane/replica/collective/rank_messages.h"
#include "penstock/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock::replica;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  absl::StatusOr<RankMessage> message = RankMessageOf(bytes);
  if (!message.ok()) return 0;
  absl::StatusOr<RankMessage> again = RankMessageOf(ToBytes(*message));
  PENSTOCK_CHECK(again.ok());
  PENSTOCK_CHECK(*again == *message);
  return 0;
}
