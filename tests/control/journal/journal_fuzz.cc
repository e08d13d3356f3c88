// SPDX-License-Identifier: Apache-2.0
// Any bytes as a log, as a record and as a snapshot must be read or refused, nothing worse.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/journal/changes_proto.h"
#include "control/journal/log_format.h"
#include "penstock/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock::control;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  State state;
  auto log = ParseLog(bytes, 1, /*next=*/std::nullopt, "fuzz");
  if (log.ok()) {
    PENSTOCK_CHECK(log->valid_bytes <= size);
    PENSTOCK_CHECK(log->cut.empty() == (log->valid_bytes == size));
    for (const Recovered::Record& record : log->records) {
      if (!ApplyRecord(record.bytes, state).ok()) break;
    }
  }
  State other;
  (void)ApplyRecord(bytes, other);
  // The second one has each iteration in two pieces.
  for (const std::vector<std::string>& pieces :
       {std::vector{std::string(bytes)}, std::vector{std::string(bytes), std::string(bytes)}}) {
    if (auto snapshot = DecodeState(pieces); snapshot.ok()) {
      PENSTOCK_CHECK(DecodeState(EncodeState(*snapshot).value()).ok());
    }
  }
  return 0;
}
