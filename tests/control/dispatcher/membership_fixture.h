// SPDX-License-Identifier: Apache-2.0
// Readers that follow the membership of their iteration and answer fences, for tests of the core.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "control/dispatcher/messages/peer_messages.h"
#include "control/stub/membership_view.h"
#include "tests/control/dispatcher/core_fixture.h"

namespace penstock::control {

inline constexpr absl::Duration kSweepInterval = absl::Milliseconds(100);

class MembershipTest : public CoreTest {
 protected:
  // A reader that puts the messages together, and answers fences.
  struct Client {
    Reader reader;
    MembershipView view;
    int fences = 0;  // that it has got
  };

  // A worker connects and lists the partitions it holds.
  void Hello(Worker& worker, const std::string& address, std::vector<PlacedPartition> held = {},
             uint64_t id = 1, int32_t permits = 1) {
    if (worker.peer != nullptr) core_->OnClosed(worker.peer);
    worker.peer = core_->OpenWorker(worker.inbox);
    core_->OnMessage(worker.peer, WorkerHello{.worker = WorkerId(id),
                                              .address = address,
                                              .permits = permits,
                                              .held = std::move(held)});
  }
  JobAnswer DynamicJob(JobQuota quota = {}) {
    return Job("job", Register(1, 10'000), {.mode = ShardingPolicy::kDynamic, .quota = quota});
  }
  // Returns the partitions that the worker has.
  std::vector<PlacedPartition> Held(uint64_t worker) const {
    std::vector<PlacedPartition> held;
    for (const auto& [id, iteration] : recovered_.iterations) {
      for (size_t p = 0; p < iteration.record.partitions.size(); ++p) {
        const protocol::PartitionRecord& partition = iteration.record.partitions[p];
        if (partition.worker == WorkerId(worker))
          held.push_back(PlacedBy(recovered_, id, PartitionId(p + 1), partition.placement));
      }
    }
    return held;
  }
  static void Drop(Reader& reader) {
    while (reader.inbox->Take<Membership>()) {
    }
  }
  // Lets the client handle its messages. Returns whether there were any.
  bool Read(Client& client) {
    auto& messages = client.reader.inbox->messages;
    const bool any = !messages.empty();
    while (!messages.empty()) {
      const ClientDown message = std::move(messages.front());
      messages.pop_front();
      if (std::holds_alternative<Welcome>(message)) {
        client.view.ExpectWhole();
      } else if (const auto* membership = std::get_if<Membership>(&message)) {
        const auto altered = client.view.Apply(*membership);
        EXPECT_TRUE(altered.ok()) << altered.status();
      } else if (const auto* fence = std::get_if<Fence>(&message)) {
        ++client.fences;
        core_->OnMessage(client.reader.peer, FenceAnswer{{.partition = fence->partition,
                                                          .placement = fence->placement,
                                                          .delivered = {},
                                                          .received = {},
                                                          .whole = true}});
      }
    }
    return any;
  }
};

}  // namespace penstock::control
