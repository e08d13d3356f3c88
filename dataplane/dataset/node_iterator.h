// SPDX-License-Identifier: Apache-2.0
// A dataset at work: one object per node, pulled from the last. The same
// objects run in process and for a partition on a worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/split.h"
#include "dataplane/memory/pool.h"
#include "penstock/dataset.h"
#include "penstock/element.h"

namespace penstock {

class ElementViews;     // dataplane/dataset/element_views.h
class Files;            // control/env/files.h
class Profile;          // dataplane/dataset/profile.h
class PythonHost;       // dataplane/dataset/python_host.h
class ReadAheadBudget;  // dataplane/dataset/read_ahead.h
class ResultSink;       // dataplane/dataset/function.h

// Positions as bytes (varints and strings), written and read in the same order.
class StateWriter;
class StateReader;

// Yields a node's elements in their fixed order. One thread at a time, but for
// Cancel().
class NodeIterator {
 public:
  virtual ~NodeIterator() = default;

  // The next element; nullopt at the end and ever after. An error stands at
  // the place of an element: the next call goes on behind it.
  virtual absl::StatusOr<std::optional<Element>> Next() = 0;

  // The next element written into `sink` (which may be a row of a batch) rather
  // than into a block of its own; false at the end. What the sink got before an
  // error is void. By default Next() and a copy.
  virtual absl::StatusOr<bool> NextInto(ResultSink& sink);

  // The leaves of the next element added to `views`, which keep the memory they lie
  // in: for who only looks at them, so that what lies in memory already need not be
  // copied into a block. False at the end. What was added before an error is void.
  // By default those of Next().
  virtual absl::StatusOr<bool> NextViews(ElementViews& views);

  // Passes over up to `count` elements as Next() would, without making what
  // need not be made; returns how many there were.
  virtual absl::StatusOr<int64_t> Skip(int64_t count);

  // The position behind the last element that Next() returned, however far the
  // node has read ahead. Positions and counts, never elements.
  virtual absl::Status Save(StateWriter& writer) = 0;
  // REQUIRES: freshly built. DataLoss if the bytes are not a position of this node.
  virtual absl::Status Restore(StateReader& reader) = 0;
};

// Iterators to whom it matters that a saved state became durable, or that
// reading was stopped (Distribute). They know states by StateWriter::save_number().
class CommitListeners {
 public:
  // The state of Save() number `save` is durable. Returns when that is known to
  // whoever must know. States the listener never saw are no concern of its.
  using Listener = std::function<absl::Status(uint64_t save)>;

  // Any thread. Remove() waits until the listener is not being called.
  uint64_t Add(Listener listener);
  void Remove(uint64_t id);
  // Calls all; the first error.
  absl::Status Commit(uint64_t save);

  // Reading has been stopped on purpose (Iterator::Stop): return when whoever
  // must know that knows, or after `bound`. Kept as long as this lives.
  using StopListener = std::function<void(absl::Duration bound)>;
  void AddStop(StopListener listener);
  void Stop(absl::Duration bound);

 private:
  Mutex mu_;
  uint64_t last_id_ GUARDED_BY(mu_) = 0;
  std::map<uint64_t, Listener> listeners_ GUARDED_BY(mu_);
  std::vector<StopListener> stop_listeners_ GUARDED_BY(mu_);
};

class StateExchange;  // state_sections.h

// What all nodes of one running dataset share.
struct RunContext {
  uint64_t seed = 0;                // fills in seeds that the definition leaves open
  int64_t repetition = 0;           // of the iteration, for Repeat behind Distribute; or the epoch
  bool of_dataset = false;          // what nodes may keep (KeptByNode) is for all runs of it
  uint64_t partition = 0;           // 0: the whole dataset
  bool same_elsewhere = false;      // others divide with this one what all of them make alike
  int64_t hint_shards = 0;          // in the place of kShardHint; 0: no hint may stand there
  int64_t hint_index = 0;           // in [0, hint_shards)
  SplitFeed* splits = nullptr;      // nullptr: the sources read everything themselves
  const SplitPlan* plan = nullptr;  // given with `splits`: resolved file lists
  Pool* pool = nullptr;             // elements are written here; nullptr: DefaultPool()
  // What the last node gives, made by it or by whose elements it hands on (NodeKind::hands_on);
  // nullptr: as `pool`. `output_ahead`: also from behind a node that reads ahead, which then holds
  // memory of it; on workers not, where it is clients' slots.
  Pool* output = nullptr;
  bool output_ahead = false;
  // What the last node gives is sent on ahead of who takes it, as by a worker: a Prefetch that is
  // last would hold it once more, out of clients' slots, and is left out.
  bool sent_ahead = false;
  Files* files = nullptr;                  // nullptr: DefaultFiles()
  int threads = 0;                         // for parallel nodes; 0: one per core
  std::atomic<bool>* cancelled = nullptr;  // set from any thread; long waits end with Cancelled
  CommitListeners* commits = nullptr;      // nullptr: nobody commits
  std::shared_ptr<StateExchange> states;   // nullptr: states are positions and nothing else
  Profile* profile = nullptr;              // nullptr: nothing is counted
  ReadAheadBudget* read_ahead = nullptr;   // nullptr: ReadAheadBudget::OfProcess()
  std::shared_ptr<PythonHost> python;      // nullptr: PythonHost::OfProcess()
};

// The iterator of `dataset` (with all its inputs). The context outlives it.
// NotFound for a registered function that this program lacks.
absl::StatusOr<std::unique_ptr<NodeIterator>> BuildIterator(const Dataset& dataset,
                                                            const RunContext& context);

// Save() and Restore() of a whole iterator as bytes, with a version and the
// dataset's fingerprint in front. `save` is what CommitListeners know the state by.
absl::StatusOr<std::string> SaveIterator(NodeIterator& iterator, const Dataset& dataset,
                                         uint64_t save = 0);
// InvalidArgument for a position of another dataset, naming the first node that
// differs; DataLoss for bytes that no SaveIterator wrote.
absl::Status RestoreIterator(NodeIterator& iterator, const Dataset& dataset,
                             std::string_view bytes);

}  // namespace penstock
