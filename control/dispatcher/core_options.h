// SPDX-License-Identifier: Apache-2.0
// The options of a dispatcher's core: the times of leases, heartbeats and clean-up, the limits of
// its journal, and the functions through which the core reaches the clock, random numbers and the
// network. DispatcherConfig (penstock/server.h) has the options that users may set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/dispatcher/job_tokens.h"
#include "control/journal/changes_proto.h"
#include "control/observe/event_log.h"
#include "control/policy/audience.h"
#include "control/policy/leases.h"
#include "control/policy/quotas.h"
#include "control/policy/snapshots.h"
#include "control/protocol/rules.h"
#include "control/state/format.h"
#include "penstock/server.h"

namespace penstock::control {

struct CoreOptions {
  absl::Duration client_timeout = kClientTimeout;
  absl::Duration worker_timeout = kWorkerTimeout;
  absl::Duration heartbeat_interval = kHeartbeatInterval;
  absl::Duration job_gc_timeout = absl::Minutes(5);
  // If not empty: the addresses that workers may have. The number of addresses is the number of
  // shards.
  std::vector<std::string> worker_addresses;
  DeploymentMode deployment_mode = DeploymentMode::kUnspecified;
  bool gc_dynamic_sharding_jobs = false;
  // How long an unread job is kept if job_gc_timeout does not apply to it, and how long a dataset
  // is kept while no job reads it.
  absl::Duration abandoned_job_ttl = absl::InfiniteDuration();
  absl::Duration dataset_ttl = absl::InfiniteDuration();
  Quotas quotas;  // of the namespaces
  // The number of workers above which each reader of a shared iteration reads about this many of
  // them (control/policy/audience.h); 0: each reader reads all.
  int64_t max_links = kMaxLinks;
  // If the time between two sweeps is longer than this, the dispatcher itself was stalled. If
  // timeouts are short, the bound is lower (Liveness::Stall()).
  absl::Duration stall = absl::Seconds(3);
  // Once a reader has been unable to reach a worker for this long, that worker's partitions move to
  // other workers, if there are any.
  absl::Duration unreached_timeout = absl::Seconds(15);
  // When the journal gets a snapshot, and how much of it is encoded at once
  // (control/policy/snapshots.h).
  LogSize per_snapshot = {.records = kRecordsPerSnapshot, .bytes = kBytesPerSnapshot};
  size_t snapshot_bytes_at_once = kSnapshotBytesAtOnce;
  size_t record_bytes = kMostRecordBytes;  // the maximum size of a record in bytes
  // The format of a new journal (control/state/format.h). For tests; a journal that exists keeps
  // the format that was finalised for it.
  uint32_t new_format = kNewestFormat;
  // The rule that the protocol breaks on purpose, for the test that counts losses
  // (control/protocol/rules.h).
  protocol::Broken broken = protocol::Broken::kNone;
  // For tests: asked at each event whether to compare what the core keeps, so that it need not be
  // computed again, with what it would compute. A difference breaks an invariant
  // (control/protocol/invariant.h). Called under the core's lock; nullptr: never compare.
  std::function<bool()> check_kept;
  // For tests: if not null, counts the calls of PartitionPlacer::OpenAndPlace() that did not return
  // in constant time. Changes under the core's lock.
  uint64_t* placings = nullptr;

  // Called with and without locks of the core, by any thread. Must not take a lock that is held
  // while the core is called.
  std::function<absl::Time()> now;
  std::function<uint64_t()> random;
  // Returns how the tokens of jobs are made. Called once, before the first record of this life.
  // `needed`: the id of the key that jobs of the journal need; 0: any key will do. The core does
  // not start with another key, and returns this function's error.
  std::function<absl::StatusOr<JobTokens>(uint64_t needed)> job_tokens;
  // Returns whether a connection to "host:port" is refused, because no process listens there any
  // more. May block, for example while the host name is resolved. Only ProbeBrokenWorkers() calls
  // it.
  std::function<bool(const std::string& address)> port_refuses;
  // Returns whether surely no other dispatcher leads. While it returns false, no heartbeat is
  // answered. Null: there is no standby. Any thread may call it.
  std::function<bool()> leads;
  // Called once when the journal cannot be written. After that, the dispatcher answers no requests.
  std::function<void(const absl::Status&)> on_failure;
  std::shared_ptr<EventLog> events;
};

}  // namespace penstock::control
