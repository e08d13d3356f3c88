// SPDX-License-Identifier: Apache-2.0
// A link's further connections at the client's end, and the connection whose turn it is.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/tcp/loop.h"
#include "dataplane/transfer/tcp/receive_stripe.h"
#include "dataplane/transfer/tcp/socket.h"

namespace penstock::transfer::tcp {

// Used by the thread that serves the link, except Close().
class ReceiveStripes {
 public:
  // Opens at most one connection per loop. The loop serves its connection.
  explicit ReceiveStripes(std::vector<std::shared_ptr<Loop>> loops) : loops_(std::move(loops)) {}

  bool wanted() const { return !loops_.empty(); }
  // The worker offers connections: begins to open them. DataLoss if they were not requested.
  absl::Status Open(const StripeKey& key, const Endpoint& worker, const ReceiveStripe::Link& link);
  // The next element comes over the connection that `striped` names. DataLoss if there is no such
  // connection.
  absl::Status Await(const Striped& striped);
  bool awaits() const { return awaited_ != nullptr; }
  // Takes the awaited element; nullopt if it has not arrived yet. REQUIRES: awaits().
  absl::StatusOr<std::optional<ReceiveStripe::Came>> Take();

  // Same as in ReceiveStripe. Any thread, while no thread is in Open().
  void Close();
  void HangUp();

 private:
  const std::vector<std::shared_ptr<Loop>> loops_;
  std::vector<std::shared_ptr<ReceiveStripe>> stripes_;
  ReceiveStripe* awaited_ = nullptr;  // the stripe whose turn it is, if any
};

}  // namespace penstock::transfer::tcp
