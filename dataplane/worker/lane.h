// SPDX-License-Identifier: Apache-2.0
// A placed partition's way to the clients that read its iteration.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "control/protocol/sender.h"
#include "control/protocol/session_messages.h"
#include "dataplane/worker/exit.h"

namespace penstock::worker {

class Outlet;

// Sends each element to one reader with a credit; before it goes what must be
// sent again.
class Lane final : public PartitionExit {
 public:
  // Use Outlet::Open.
  Lane(std::shared_ptr<Outlet> outlet, const LaneOptions& options);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  const control::PlacedPartition& of() const { return of_; }

  absl::Status Send(transfer::Sent sent) override;
  void Pass(Index index) override;
  absl::Status End(Index elements) override;
  void Linger() override;
  std::shared_ptr<Pool> NextSlots() override;
  void AddReader(const control::Reader& reader) override;
  void Cancel() override;

 private:
  friend class Outlet;
  transfer::Sent TakeAgainLocked();  // REQUIRES: !again_.empty()
  bool Serves(const control::Reader& reader) const;

  const std::shared_ptr<Outlet> outlet_;
  const control::PlacedPartition of_;
  Permit* const permit_;

  // Guarded by outlet_->mu_.
  protocol::Sender sender_;
  std::vector<control::Reader> readers_;
  // Sent on links that broke, by the client that alone can settle it.
  std::map<ClientId, std::vector<transfer::Sent>> in_doubt_;
  std::map<Index, transfer::Sent> again_;  // settled: did not land
  bool cancelled_ = false;
};

}  // namespace penstock::worker
