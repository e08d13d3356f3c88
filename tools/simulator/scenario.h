// SPDX-License-Identifier: Apache-2.0
// Describes a simulated run: the cluster, the trainers, the network, the disk, the faults and the
// bound on its time. A scenario is a short text, one statement a line (docs/simulator.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/protocol/rules.h"
#include "control/state/format.h"
#include "penstock/distribute.h"
#include "penstock/server.h"
#include "tools/simulator/engine/dice.h"
#include "tools/simulator/world/network.h"

namespace penstock::simulator {

enum class RoleKind : uint8_t { kDispatcher, kWorker, kTrainer, kEtcd };

// A process of the cluster, such as "worker 2". Without a number, the dispatcher is the one that
// leads, and of the others one of the kind is drawn each time.
struct Target {
  RoleKind kind = RoleKind::kDispatcher;
  std::optional<int> number;  // counted from 1
};

struct Fault {
  enum class Kind : uint8_t {
    kCrash,      // SIGKILL
    kPause,      // SIGSTOP, and after `time` SIGCONT
    kCut,        // messages from `target` to `other` are dropped for `time`
    kBreak,      // the connections between `target` and `other` break
    kDrain,      // a worker gives its partitions away and ends
    kLeave,      // the process ends in the usual way
    kJoin,       // one more worker or trainer
    kJumpClock,  // the time of day of the process is set forward by `time`; negative: back
    kFillDisk,   // the dispatcher's disk, or etcd, has no room for `time`
    kFinalise,   // an operator finalises the upgrade
  };
  Kind kind = Kind::kCrash;
  std::string name;  // FaultName() of its text
  Target target;
  Target other;              // of kCut and kBreak
  bool both_ways = false;    // of kCut
  bool power_loss = false;   // of kCrash of a dispatcher: unsynced data are lost
  Span time = {};            // of kPause, kCut, kJumpClock and kFillDisk
  std::optional<Span> back;  // of kCrash, kDrain and kLeave: starts again after it; nullopt: never
};

// One of `faults` is drawn and done: once, at `when` after the start, or again and again, with
// pauses of `when`.
struct FaultRule {
  bool repeats = false;
  Span when = {};
  std::vector<Fault> faults;
};

// By how much a clock is too fast, in parts per million, drawn between two bounds; negative: too
// slow.
struct Drift {
  int64_t low_ppm = 0;
  int64_t high_ppm = 0;
};

// How a job's trainers get its elements: the kinds of DeliveryMode.
enum class Reading : uint8_t {
  kAny,     // FirstComeFirstServed
  kFair,    // the same, fair
  kRounds,  // CoordinatedRounds; the job's trainers are its consumers
  kOrder,   // DeterministicOrder; several trainers are consumers
  kCache,   // CrossTrainerCache; each trainer reads as many elements as the dataset has
};

// Trainers of a job that start with the cluster.
struct TrainerGroup {
  int trainers = 2;
  Span step;  // between two elements
};

// The dataset of a job: the numbers of a range, or records of files that contain these numbers.
struct DatasetPlan {
  int64_t elements = 2000;  // of the range
  int64_t files = 0;        // 0: a range
  int64_t shuffle = 0;      // elements in the buffer; 0: the order stays
  int64_t repeat = 1;       // how often a pass has each element; shuffled again each time

  // Returns the file that has element number `element`. REQUIRES: files > 0.
  int64_t FileOf(int64_t element) const { return ((element + 1) * files - 1) / elements; }
};

struct JobPlan : DatasetPlan {
  std::string name = "train";
  std::string name_space;  // empty: the default one
  bool named = true;       // false: each trainer has a job of its own
  ShardingPolicy mode = ShardingPolicy::kDynamic;
  Reading reading = Reading::kAny;
  AckMode ack = AckMode::kOnDelivery;
  int64_t repetitions = 1;  // passes
  JobShare share;
  int64_t permits = 0;      // partitions that run at once, at most; 0: no limit
  int64_t outstanding = 0;  // elements that a trainer requests or holds, at most; 0: AUTO
  std::vector<TrainerGroup> groups;

  int trainers() const;  // of all groups
  // Each trainer is one of num_consumers.
  bool has_consumers() const {
    return reading == Reading::kRounds || (reading == Reading::kOrder && trainers() > 1);
  }
};

struct Scenario : DatasetPlan {
  // --- The cluster ---
  int dispatchers = 1;  // with several, the journal is in etcd, which elects the one that leads
  int workers = 3;
  int permits = 2;                           // of a worker
  int64_t window_bytes = int64_t{64} << 20;  // of a worker; for read=cache
  absl::Duration heartbeat = absl::Seconds(1);
  absl::Duration client_timeout = absl::Seconds(60);
  absl::Duration worker_timeout = absl::Seconds(10);
  int64_t snapshot_records = 500;  // records between two snapshots of the journal
  int64_t max_links = 64;          // as in CoreOptions
  int64_t max_partitions = 0;      // of a namespace without limits below; 0: no limit
  std::map<std::string, NamespaceLimits> namespaces;
  uint32_t format = control::kNewestFormat;  // of the journal
  protocol::Broken broken = protocol::Broken::kNone;
  // --- The trainers ---
  int trainers = 2;
  AckMode ack = AckMode::kOnDelivery;
  Span step = {absl::Milliseconds(1), absl::Milliseconds(20)};  // between two elements
  int64_t save_every = 200;                                     // elements; for ack=on_commit
  bool map = true;                                              // values go through a function
  std::vector<JobPlan> jobs;  // empty: one job with the values above
  // --- The world ---
  Weather weather;
  Span disk_sync = {absl::Microseconds(500), absl::Milliseconds(20)};
  Span clock_skew = {};  // drawn for each process: its boot time minus that of a right clock
  Drift clock_drift;     // drawn for each host
  // --- The faults, until `calm` ---
  std::vector<FaultRule> rules;
  absl::Duration calm;                                // after the start
  absl::Duration finished_within = absl::Minutes(2);  // after `calm`
  int64_t given_up = 0;                               // elements, at most (check/exactly_once.h)
  // --- Which seeds a test runs ---
  uint64_t first_seed = 1;
  uint64_t last_seed = 10;
};

// Returns the scenario's jobs, at least one.
std::vector<JobPlan> JobsOf(const Scenario& scenario);

// InvalidArgument, which names the line, the error and the words that are allowed.
absl::StatusOr<Scenario> ParseScenario(std::string_view text);
// Also returns NotFound if the file cannot be read. Errors name the file.
absl::StatusOr<Scenario> ReadScenario(const std::string& path);

}  // namespace penstock::simulator
