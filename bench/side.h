// SPDX-License-Identifier: Apache-2.0
// One side of a pair: something that moves elements for a while and is measured.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::bench {

// How far apart trainers were that step together, of the steps of a window.
struct InStep {
  double skew_p50_us = 0, skew_p99_us = 0;  // from the first return of Next() to the last one
  // Of what they compute in a step, the most by the least, less 1; 0 where they compute nothing.
  double spread_p50 = 0, spread_p99 = 0;
};

// What one window brought. Latencies are of the time inside Next(), in
// microseconds; 0 where a side has none.
struct Done {
  double seconds = 0;
  double elements = 0;  // a limit may count parts of one
  int64_t bytes = 0;    // at the reader
  double p50_us = 0, p99_us = 0, max_us = 0;
  std::optional<InStep> in_step;
  std::vector<int64_t> shares;  // elements by client, or by worker where there is one client
  // Of the elements that came through shared memory in slots of their own: how many there were, and
  // how many of them the worker copied there.
  int64_t shared = 0, copied = 0;
};

// Processes by role: "consumer", "worker", "dispatcher", "limit".
using Roles = std::map<std::string, std::vector<pid_t>>;

// Used by one thread; ends its processes when destroyed.
class Side {
 public:
  virtual ~Side() = default;
  virtual std::string name() const = 0;
  virtual const Roles& roles() const = 0;
  // Processes that are to be busy meanwhile: what they use is neither this side's nor foreign.
  virtual const std::vector<pid_t>& company() const {
    static const std::vector<pid_t> none;
    return none;
  }
  // What UCX moves the elements over: "rc_mlx5/mlx5_0:1"; none where it does not move them.
  virtual std::set<std::string> lanes() const { return {}; }
  // Moves elements for about `seconds`, reads and checks them. DataLoss if an
  // element is not the one that was due.
  virtual absl::StatusOr<Done> Read(double seconds) = 0;
  // Whether each Read() starts all anew, so that none warms the next.
  virtual bool starts_anew() const { return false; }
};

struct Window {
  Done done;
  std::map<std::string, double> cpu_seconds;     // by role
  std::map<std::string, double> resident_bytes;  // by role, at the end
  double foreign_cores = 0;                      // used by others meanwhile

  double cpu() const;  // seconds, of all roles
  double rss() const;  // bytes, of all roles
  double elements_per_s() const { return done.elements / done.seconds; }
  double gb_per_s() const { return static_cast<double>(done.bytes) / 1e9 / done.seconds; }
  double cpu_per_gb() const { return cpu() / (static_cast<double>(done.bytes) / 1e9); }
};

// One window of a side, with what its processes used and what others did.
// Cancelled when we are interrupted.
absl::StatusOr<Window> Measure(Side& side, double seconds);

}  // namespace penstock::bench
