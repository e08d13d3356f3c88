// SPDX-License-Identifier: Apache-2.0
// Sends the elements of one placed partition. Part of iteration_sender.h; other code includes only
// that header.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/sender.h"
#include "control/protocol/worker_messages.h"
#include "control/sync/mutex.h"
#include "dataplane/worker/iteration_sender.h"
#include "dataplane/worker/iteration_sink.h"

namespace penstock::worker {

// Sends each element to one reader that has a credit. In a coordinated read, and in an ordered read
// by several consumers, this is the reader to which the index belongs. Elements that must be sent
// again are sent first.
class IterationSender::PartitionSender final : public PartitionSink {
 public:
  PartitionSender(std::shared_ptr<IterationSender> parent, const PartitionSinkOptions& options);
  PartitionSender(const PartitionSender&) = delete;
  PartitionSender& operator=(const PartitionSender&) = delete;

  absl::Status Send(transfer::Sent sent) override;
  absl::Status Pass(Index index) override;
  absl::Status End(Index elements) override;
  Index elements() const override { return elements_; }
  void Linger() override;
  std::shared_ptr<Pool> SlotsFor(Index index) override;
  void Produces(Index index) override { producing_ = index; }
  Index ProducesAfter(int64_t elements) const override {
    return producing_ + elements * group_size_;
  }
  void AddReader(const control::Reader& reader) override;
  void RemoveReader(ClientId) override {}  // the dispatcher places the partition again
  void Allow(int64_t rows, const std::optional<protocol::Remainder>& remainder) override;
  void Cancel() override;

 private:
  friend class IterationSender;
  // REQUIRES: !again_.empty()
  transfer::Sent TakeAgainLocked() REQUIRES(&IterationSender::mu_);
  bool Serves(const control::Reader& reader) const REQUIRES(&IterationSender::mu_);
  bool IsFor(Index index, const control::Reader& reader) const REQUIRES(&IterationSender::mu_);
  bool MaySendLocked(Index index) const REQUIRES(&IterationSender::mu_);
  // Sends the complete rows below `produced`, from held_.
  absl::Status SendRows(Index produced);
  absl::StatusOr<Index> SendRemainder(Index elements);
  absl::Status SendPads(Index elements, int64_t pads, const transfer::Sent& last);

  const std::shared_ptr<IterationSender> parent_;
  const control::PlacedPartition of_;
  Permit* const permit_;
  const int64_t consumers_;
  const int64_t group_size_;
  const bool ordered_;
  const std::optional<protocol::Positions> positions_;
  const IndexSet skip_;
  std::atomic<Index> producing_{0};

  // For the runner's thread, in a coordinated read:
  std::deque<transfer::Sent> held_;  // elements of a row that is not complete yet
  Index passed_ = 0;                 // sender_ does not know that lower indices are passed over
  Index elements_ = 0;

  protocol::Sender sender_ GUARDED_BY(&IterationSender::mu_);
  std::vector<control::Reader> readers_ GUARDED_BY(&IterationSender::mu_);
  // Elements sent on links that broke, by client, because only that client can settle them.
  std::map<ClientId, std::vector<transfer::Sent>> in_doubt_ GUARDED_BY(&IterationSender::mu_);
  std::map<Index, transfer::Sent> again_
      GUARDED_BY(&IterationSender::mu_);  // known not to have been received
  bool cancelled_ GUARDED_BY(&IterationSender::mu_) = false;
  int64_t rows_ GUARDED_BY(&IterationSender::mu_);
  std::optional<protocol::Remainder> remainder_ GUARDED_BY(&IterationSender::mu_);
  std::optional<Index> end_ GUARDED_BY(&IterationSender::mu_);  // number of elements, without pads
};

}  // namespace penstock::worker
