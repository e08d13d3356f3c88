// SPDX-License-Identifier: Apache-2.0
// Keeps workers in order of their load, so that the next one for a partition is found without a
// look at all of them.
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "penstock/ids.h"

namespace penstock::control {

// The numbers of a worker's partitions, and its permits.
struct WorkerLoad {
  int64_t partitions = 0;  // of the iteration, without ended ones
  int64_t of_all = 0;      // of all iterations
  int64_t permits = 1;     // at least 1
  double PerPermit() const { return Per(partitions); }
  double WithOneMore() const { return Per(partitions + 1); }
  double OfAllPerPermit() const { return Per(of_all); }
  friend bool operator==(const WorkerLoad&, const WorkerLoad&) = default;

 private:
  double Per(int64_t count) const {
    return static_cast<double>(count) / static_cast<double>(permits);
  }
};

// The usable workers, in the order in which ChooseWorker() prefers them for one iteration. Each
// change and each query takes logarithmic time. A value without locks.
class WorkerOrder {
 public:
  // The load with one more partition of the iteration, the load of all, and the worker.
  using Place = std::tuple<double, double, WorkerId>;

  // Adds the worker, or moves it to its new place.
  void Put(WorkerId worker, const WorkerLoad& load);
  void Remove(WorkerId worker);

  bool empty() const { return places_.empty(); }
  bool contains(WorkerId worker) const { return loads_.contains(worker); }
  // REQUIRES: the order has the worker.
  const WorkerLoad& LoadOf(WorkerId worker) const { return loads_.at(worker); }
  // The preferred worker first.
  const absl::btree_set<Place>& places() const { return places_; }
  // The workers with more partitions of the iteration than permits, each after its number of
  // partitions per permit, negated. So the one with the most comes first.
  const absl::btree_set<std::pair<double, WorkerId>>& overloaded() const { return overloaded_; }

  friend bool operator==(const WorkerOrder&, const WorkerOrder&) = default;

 private:
  absl::flat_hash_map<WorkerId, WorkerLoad> loads_;
  absl::btree_set<Place> places_;
  absl::btree_set<std::pair<double, WorkerId>> overloaded_;
};

}  // namespace penstock::control
