// SPDX-License-Identifier: Apache-2.0
// The state that the parts of the core share: its options, the peers, the dispatcher's state. The
// core's lock guards this state and the parts, which have no locks of their own: hold it to access
// them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/dispatcher/stream_writer.h"
#include "control/journal/changes_proto.h"
#include "control/observe/event_log.h"
#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/protocol/session_messages.h"
#include "control/state/state.h"
#include "penstock/server.h"

namespace penstock::control {

class Transaction;

struct CoreOptions {
  absl::Duration client_timeout = absl::Seconds(60);
  absl::Duration worker_timeout = absl::Seconds(10);
  absl::Duration heartbeat_interval = absl::Seconds(1);
  absl::Duration job_gc_timeout = absl::Minutes(5);
  // If not empty: the addresses that workers may have. Their number is the number of shards.
  std::vector<std::string> worker_addresses;
  DeploymentMode deployment_mode = DeploymentMode::kUnspecified;
  bool gc_dynamic_sharding_jobs = false;
  // How long an unread job is kept if job_gc_timeout does not apply to it, and how long a dataset
  // is kept while no job reads it.
  absl::Duration abandoned_job_ttl = absl::InfiniteDuration();
  absl::Duration dataset_ttl = absl::InfiniteDuration();
  // A longer time between two sweeps means that the dispatcher itself was stalled. For short
  // timeouts the bound is lower: Liveness::Stall().
  absl::Duration stall = absl::Seconds(3);
  // Once a reader has been unable to reach a worker for this long, that worker's partitions move to
  // other workers, if there are any.
  absl::Duration unreached_timeout = absl::Seconds(15);
  // The number of records between snapshots, and the maximum size of a record in bytes.
  uint64_t records_per_snapshot = 20'000;
  size_t record_bytes = kMostRecordBytes;
  // A rule to break, for the test that counts losses (control/protocol/rules.h).
  protocol::Broken broken = protocol::Broken::kNone;

  std::function<absl::Time()> now;
  std::function<uint64_t()> random;
  // Returns whether a connection to "host:port" is refused: no process listens there any more. May
  // block, for example while it resolves the host name. Only ProbeBrokenWorkers() calls it.
  std::function<bool(const std::string& address)> port_refuses;
  // Called once when the journal cannot be written; the dispatcher answers nothing afterwards.
  std::function<void(const absl::Status&)> on_failure;
  std::shared_ptr<EventLog> events;
};

using SessionKey = std::pair<IterationId, ClientId>;

// Counts a message from its arrival until it is handled.
class Arriving {
 public:
  explicit Arriving(std::atomic<int>& count) : count_(count) { ++count_; }
  ~Arriving() { --count_; }
  Arriving(const Arriving&) = delete;
  Arriving& operator=(const Arriving&) = delete;

 private:
  std::atomic<int>& count_;
};

// The core's lock guards the fields of both, except `arriving`.
struct ClientPeer {
  std::shared_ptr<ClientStreamWriter> writer;
  // Messages that wait for the lock. While there are any, the sender is alive, however long ago it
  // was last heard from. Not guarded by the lock.
  std::atomic<int> arriving = 0;
  IterationId iteration;  // none before its hello and after its end
  ClientId client;
  Incarnation incarnation;
  Incarnation process;
  int64_t consumer = -1;  // its number in a coordinated read
  bool at_quota = false;  // according to its last heartbeat

  // A heartbeat renews the lease once the journal has stored a record that was appended after it.
  // So a dispatcher that has lost its work_dir to another grants no client a lease longer than the
  // other one waits for.
  uint64_t renewed = 0;  // the last such heartbeat
  struct Beat {
    uint64_t counter = 0;      // 0: none waits
    uint64_t last_record = 0;  // sequence of the last record when the heartbeat arrived
    absl::Time since;
  } waiting;
};
struct WorkerPeer {
  std::shared_ptr<WorkerStreamWriter> writer;
  std::atomic<int> arriving = 0;  // as in ClientPeer
  WorkerId worker;                // none before its hello and after its end
  std::vector<DatasetWork> work;  // according to its last heartbeat
};

struct SharedState {
  const CoreOptions& options;
  const std::atomic<uint64_t>& durable;  // sequence of the last durable record
  State state;                           // only Transaction::Apply() changes it, once recovered
  std::map<IterationId, protocol::IterationContext> contexts;
  std::map<SessionKey, std::shared_ptr<ClientPeer>> sessions;  // connected
  std::map<WorkerId, std::shared_ptr<WorkerPeer>> workers;     // connected
  uint64_t sequence = 0;                                       // of the last record
  uint64_t snapshot_sequence = 0;                              // of the last snapshot
  uint64_t membership_version = 0;                             // of the last Membership

  bool IsConnected(IterationId iteration) const {  // by any client
    const auto session = sessions.lower_bound({iteration, ClientId()});
    return session != sessions.end() && session->first.first == iteration;
  }
  std::vector<std::shared_ptr<ClientPeer>> SessionsOf(IterationId iteration) const {
    std::vector<std::shared_ptr<ClientPeer>> peers;
    for (auto i = sessions.lower_bound({iteration, ClientId()});
         i != sessions.end() && i->first.first == iteration; ++i) {
      peers.push_back(i->second);
    }
    return peers;
  }
};

}  // namespace penstock::control
