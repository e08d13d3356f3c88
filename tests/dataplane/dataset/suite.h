// SPDX-License-Identifier: Apache-2.0
// Checks of every source and transform. A node kind registers datasets that end in
// it (sources/cases.cc, transforms/cases.cc); suite_test.cc checks every promise of
// node_iterator.h and split.h for all of them:
//
//   same seed, same order · saving and restoring at every index · Skip(n) is
//   n × Next · parallelism changes nothing · a definition gives the same
//   dataset · partitions 1 … 7 with splits assigned at random are together the
//   whole · a partition's bookmark replays exactly · stopping ends reading
//
// A kind without a case fails SuiteTable.EveryKindHasACase.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "control/env/fake_files.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/dataset/engine/replay_point.h"
#include "dataplane/dataset/graph/split.h"
#include "penstock/dataset.h"
#include "penstock/element.h"
#include "penstock/sources.h"  // IWYU pragma: export

namespace penstock::suite {

struct Case {
  std::string name;  // letters and digits
  // The kinds that this case covers: the last node's op, and those of bodies.
  std::vector<std::string> kinds;
  // Makes the dataset. Its files are in TestFiles() below.
  std::function<Dataset()> make;
  // How many elements are read at most; needed for infinite datasets.
  int64_t limit = 1000;
  // True if the partitions are together the whole dataset. False for nodes that count their own
  // elements (Take, Enumerate, …).
  bool divides = true;
  // Returns the parts that must be found once in the whole and once in the partitions together: the
  // element, or for batches their rows. nullptr: Contents().
  std::function<std::vector<std::string>(const Element&)> parts = nullptr;
};

// Returns a case whose partitions are not together the whole.
inline Case Counting(Case c) {
  c.divides = false;
  return c;
}

std::vector<Case> SourceCases();
std::vector<Case> TransformCases();
std::vector<Case> BatchingCases();   // transforms, too
std::vector<Case> CombiningCases();  // transforms, too
std::vector<Case> PluginCases();
std::vector<Case> AllCases();

// Files in memory that cases may read: /data/a.tfrecord, b and c (5, 0 and 8
// records "a0" …), /data/a.txt, b and c (the same as lines).
FakeFiles& TestFiles();

// Returns all values of an element, exactly.
std::string Contents(const Element& element);
// Returns the values of each row of a batch: leaves are cut along their first dimension.
std::vector<std::string> Rows(const Element& batch);

// Assigns the splits of a plan to partitions 1 … `partitions` by `seed`, differently in each
// repetition.
std::unique_ptr<SplitFeed> AssignSplitsAtRandom(const SplitPlan& plan, uint64_t seed,
                                                int partitions, int partition);

class RetiringFeed;

// A dataset that is being read, and its context.
class Reading {
 public:
  struct Options {
    uint64_t seed = 7;
    int threads = 2;
    const SplitPlan* plan = nullptr;  // with `partition` of `partitions`
    int partitions = 0;
    int partition = 0;
    uint64_t split_seed = 0;      // seed of the assignment of splits
    bool same_elsewhere = false;  // as in RunContext
  };
  Reading(const Dataset& dataset, const Options& options);
  ~Reading();

  // Returns the next element; "end", or "error: …" in its place.
  std::string Next();
  // Returns up to `limit` elements like Next(), without "end".
  std::vector<std::string> Rest(int64_t limit);
  // Returns Case::parts of the remaining elements.
  std::vector<std::string> Parts(const Case& c);
  int64_t Skip(int64_t count);
  std::string Save();
  absl::Status Restore(const std::string& bytes);
  // Saves; after Restore(), splits that are not needed after the position cannot be had any more.
  ReplayPoint SaveForReplay();
  absl::Status Restore(const ReplayPoint& point);
  void Cancel() { stop_.request_stop(); }
  NodeIterator& iterator() { return *iterator_; }

 private:
  Dataset dataset_;
  std::stop_source stop_;
  std::unique_ptr<RetiringFeed> feed_;
  RunContext context_;
  std::unique_ptr<NodeIterator> iterator_;
};

}  // namespace penstock::suite
