// SPDX-License-Identifier: Apache-2.0
// The control side of a client's session without its data side: it answers the dispatcher as a
// session does (dataplane/client/session), but opens no links. It reports elements that nobody
// made: each client has a range of indices of its own in each partition.
#pragma once

#include <cstdint>
#include <map>
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
  // `number`: from 1 to 10,000, and different for each client of the job.
  LightClient(uint64_t number, const control::JobAnswer& job) : number_(number), job_(job) {}

  // As in LightWorker.
  control::ClientHello Hello();
  void OnMessage(const control::ClientDown& message, uint64_t sequence,
                 std::vector<control::ClientUp>& answers);
  // The first one on a stream names a link to each worker with partitions. Each later one names the
  // links over which the elements in reports have come since the last one, and links that are new
  // or gone.
  control::ClientHeartbeat Beat();
  // The stream broke.
  void OnLost() { welcome_ = false; }
  // Returns a message of a client that reads: a report; nullopt if no partition serves it.
  std::optional<control::ClientUp> Progress();
  // Reports elements of a few partitions that serve it as delivered. REQUIRES: has_partitions().
  control::Report NextReport();

  uint64_t number() const { return number_; }
  bool welcome() const { return welcome_; }
  bool has_partitions() const { return !served_.empty(); }
  // As in LightWorker.
  uint64_t term() const { return heard_.life.term.value(); }
  absl::Duration interval() const { return interval_; }
  // Not OK: the dispatcher refused the client, for example because it had declared it dead.
  const absl::Status& refused() const { return refused_; }

 private:
  struct Partition {
    PartitionId id;
    uint32_t lowest = 1;  // the lowest placement that is accepted
    uint32_t delivered = 0;
  };
  void OnWelcome(const control::Welcome& welcome, std::vector<control::ClientUp>& answers);
  void OnMembership(const control::Membership& membership);
  Partition& PartitionAt(PartitionId partition);
  IndexSet DeliveredOf(const Partition& partition) const;

  const uint64_t number_;
  const control::JobAnswer job_;
  // That a Welcome or a fence has named, or of which it has elements; ascending.
  std::vector<Partition> partitions_;
  std::vector<PartitionId> served_;  // by workers, according to the memberships; ascending
  control::MembershipView view_;
  std::map<WorkerId, int64_t> links_;  // to workers with partitions: elements over each link
  std::set<WorkerId> changed_links_;   // since the last heartbeat
  std::vector<WorkerId> gone_links_;   // since then
  bool names_all_links_ = true;        // in the next heartbeat
  control::Heard heard_;
  absl::Duration interval_;
  uint64_t beats_ = 0;
  uint64_t reports_ = 0;
  bool welcome_ = false;
  absl::Status refused_;
};

}  // namespace penstock::bench
