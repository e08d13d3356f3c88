// SPDX-License-Identifier: Apache-2.0
// One side of a pair: it moves elements for a while and is measured.
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

// The time differences between trainers that step together, over the steps of a window.
struct InStep {
  double skew_p50_us = 0, skew_p99_us = 0;  // from the first return of Next() to the last
  // The longest computing time in a step divided by the shortest, minus 1; 0 if trainers compute
  // nothing.
  double spread_p50 = 0, spread_p99 = 0;
};

// The result of one window. Latencies are times inside Next(), in microseconds; 0 if a side has
// none.
struct Done {
  double seconds = 0;
  double elements = 0;  // not an integer if a limit counts parts of an element
  int64_t bytes = 0;    // received by the reader
  double p50_us = 0, p99_us = 0, max_us = 0;
  std::optional<InStep> in_step;
  std::vector<int64_t> shares;  // elements by client, or by worker if there is one client
  // The number of elements that came through shared memory in their own slots, and how many of them
  // the worker copied there.
  int64_t shared = 0, copied = 0;

  // Sets the latencies from the times of all calls. Reorders them.
  void SetLatencies(std::vector<float>& next_us);
};

// The processes of each role: "consumer", "worker", "dispatcher", "limit".
using Roles = std::map<std::string, std::vector<pid_t>>;

// Used by one thread. Its processes end on destruction.
class Side {
 public:
  virtual ~Side() = default;
  virtual std::string name() const = 0;
  virtual const Roles& roles() const = 0;
  // Returns other processes that are meant to be busy. Their CPU counts neither for this side nor
  // as foreign.
  virtual const std::vector<pid_t>& company() const {
    static const std::vector<pid_t> none;
    return none;
  }
  // Returns the lanes of UCX, such as "rc_mlx5/mlx5_0:1"; none if UCX does not move the elements.
  virtual std::set<std::string> lanes() const { return {}; }
  // Moves elements for about `seconds`, reads and checks them. DataLoss if an element is not the
  // expected one.
  virtual absl::StatusOr<Done> Read(double seconds) = 0;
  // Returns whether each Read() starts new processes, so that no Read() warms up the next.
  virtual bool starts_anew() const { return false; }
};

struct Window {
  Done done;
  std::map<std::string, double> cpu_seconds;     // by role
  std::map<std::string, double> resident_bytes;  // by role, at the end
  double foreign_cores = 0;                      // cores used by other processes meanwhile

  double cpu() const;  // seconds, over all roles
  double rss() const;  // bytes, over all roles
  double elements_per_s() const { return done.elements / done.seconds; }
  double gb_per_s() const { return static_cast<double>(done.bytes) / 1e9 / done.seconds; }
  double cpu_per_gb() const { return cpu() / (static_cast<double>(done.bytes) / 1e9); }
};

// Measures one window of a side, with its processes' CPU and memory and the machine's other load.
// Cancelled when interrupted.
absl::StatusOr<Window> Measure(Side& side, double seconds);

}  // namespace penstock::bench
