// SPDX-License-Identifier: Apache-2.0
// Messages between the processes of a group and the collective server. A message is encoded as a
// number for its kind, followed by its fields as state_bytes.h writes them. All processes must run
// the same release.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/replica/collective/collective_server.h"

namespace penstock::replica {

inline constexpr uint64_t kRankMessagesVersion = 1;

// The first message on a connection, to the server.
struct RankHello {
  uint64_t version = kRankMessagesVersion;
  std::string launch;
  int64_t rank = 0;
  int64_t ranks = 0;
  friend bool operator==(const RankHello&, const RankHello&) = default;
};
// The server's answer: OK once all ranks are connected, otherwise the reason why the connection
// failed.
struct RankWelcome {
  absl::Status status;
  friend bool operator==(const RankWelcome&, const RankWelcome&) = default;
};
struct RankCalls {  // to the server
  uint64_t communicator = 0;
  RankCall call;
  friend bool operator==(const RankCalls&, const RankCalls&) = default;
};
struct RankEnds {  // to the server
  uint64_t communicator = 0;
  absl::Status why;
  friend bool operator==(const RankEnds&, const RankEnds&) = default;
};
// To the server: the process leaves normally.
struct RankLeaves {
  friend bool operator==(const RankLeaves&, const RankLeaves&) = default;
};
struct RankEventMessage {  // from the server
  uint64_t communicator = 0;
  absl::Status end;
  RankResult result;  // if `end` is OK
  friend bool operator==(const RankEventMessage&, const RankEventMessage&) = default;
};

using RankMessage =
    std::variant<RankHello, RankWelcome, RankCalls, RankEnds, RankLeaves, RankEventMessage>;

std::string ToBytes(const RankMessage& message);
// DataLoss for bytes that ToBytes() cannot have written.
absl::StatusOr<RankMessage> RankMessageOf(std::string_view bytes);

}  // namespace penstock::replica
