// SPDX-License-Identifier: Apache-2.0
// The control side of a client's session without its data side: it answers the dispatcher as a
// session does (dataplane/client/session), but opens no links. It reports elements that nobody
// made: each client has a range of indices of its own in each partition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/requests.h"
#include "control/stub/membership_view.h"

namespace penstock::bench {

// One thread at a time calls it. The caller owns the stream: it sends what the methods return.
class LightClient {
 public:
  // `number`: from 1 to 10,000, and different for each client of the job. `links`: the maximum
  // number of workers that its heartbeats name; 0: all of which it was told.
  LightClient(uint64_t number, const control::JobAnswer& job, size_t links)
      : number_(number), job_(job), links_(links) {}

  // As in LightWorker.
  control::ClientHello Hello();
  void OnMessage(const control::ClientDown& message, uint64_t sequence,
                 std::vector<control::ClientUp>& answers);
  control::ClientHeartbeat Beat();
  // The stream broke.
  void OnLost() { welcome_ = false; }
  // Returns a message of a client that reads: a report; nullopt if it knows no partition.
  std::optional<control::ClientUp> Progress();
  // Reports elements of a few partitions as delivered. REQUIRES: has_partitions().
  control::Report NextReport();

  uint64_t number() const { return number_; }
  bool welcome() const { return welcome_; }
  bool has_partitions() const { return !partitions_.empty(); }
  // As in LightWorker.
  uint64_t term() const { return heard_.life.term.value(); }
  absl::Duration interval() const { return interval_; }
  // Not OK: the dispatcher refused the client, for example because it had declared it dead.
  const absl::Status& refused() const { return refused_; }

 private:
  struct Partition {
    uint32_t lowest = 1;  // the lowest placement that is accepted
    uint32_t delivered = 0;
  };
  void OnWelcome(const control::Welcome& welcome, std::vector<control::ClientUp>& answers);
  void OnMembership(const control::Membership& membership);
  Partition& PartitionAt(PartitionId partition);
  IndexSet DeliveredOf(const Partition& partition) const;

  const uint64_t number_;
  const control::JobAnswer job_;
  const size_t links_;
  std::vector<Partition> partitions_;
  control::MembershipView view_;
  std::set<WorkerId> workers_;  // that have partitions; the first `links_` of them have links
  control::Heard heard_;
  absl::Duration interval_;
  uint64_t beats_ = 0;
  uint64_t reports_ = 0;
  bool welcome_ = false;
  absl::Status refused_;
};

}  // namespace penstock::bench
