// SPDX-License-Identifier: Apache-2.0
// A running dataset: one object per node. The reader pulls from the last node. The same objects run
// in process and for a partition on a worker.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/graph/split.h"
#include "dataplane/memory/pool.h"
#include "penstock/dataset.h"
#include "penstock/element.h"

namespace penstock {

class ElementViews;     // dataplane/dataset/engine/element_views.h
class Disk;             // control/env/disk.h
class Files;            // control/env/files.h
class Profile;          // dataplane/dataset/engine/profile.h
class PythonHost;       // dataplane/dataset/expr/python_host.h
class BufferAccount;    // dataplane/memory/buffer_budget.h
class ReadAheadBudget;  // dataplane/dataset/engine/read_ahead.h
class ResultSink;       // dataplane/dataset/expr/function.h
class ThreadPool;       // dataplane/dataset/transforms/map/thread_pool.h

// A node's position as bytes (varints and strings), written and read in the same order.
class StateWriter;
class StateReader;

// Returns a node's elements in their fixed order. One thread at a time.
class NodeIterator {
 public:
  virtual ~NodeIterator() = default;

  // Returns the next element; nullopt at the end and in every later call. An error takes the place
  // of an element: the next call continues after it.
  virtual absl::StatusOr<std::optional<Element>> Next() = 0;

  // Writes the next element into `sink` (which may be a row of a batch) instead of into its own
  // block; false at the end. After an error, the contents of the sink are invalid. The default
  // calls Next() and copies.
  virtual absl::StatusOr<bool> NextInto(ResultSink& sink);

  // Adds the leaves of the next element to `views`, which keep their memory alive; false at the
  // end. For callers that only read the leaves: leaves that are already in memory are then not
  // copied into a block. After an error, the added leaves are invalid. The default adds the leaves
  // of Next().
  virtual absl::StatusOr<bool> NextViews(ElementViews& views);

  // Skips up to `count` elements as if Next() had returned them, and avoids computing them where
  // possible. Returns the number of elements skipped.
  virtual absl::StatusOr<int64_t> Skip(int64_t count);

  // Writes the position after the last element that Next() returned, however far the node has read
  // ahead. The position consists of the inputs' positions and of counts. It contains no elements;
  // the only exception is the state of Scan.
  virtual absl::Status Save(StateWriter& writer) = 0;
  // REQUIRES: freshly built. DataLoss if the bytes are not a position of this node.
  virtual absl::Status Restore(StateReader& reader) = 0;
};

// The iterators (those of Distribute) that are notified when a saved state becomes durable or when
// reading is stopped. They identify states by StateWriter::save_number().
class CommitListeners {
 public:
  // Notes that the state of Save() number `save` is durable. Returns when all parties concerned
  // have been notified. Ignores states that the listener never saw.
  using Listener = std::function<absl::Status(uint64_t save)>;

  // Any thread. Remove() waits until a running call of the listener returns.
  uint64_t Add(Listener listener);
  void Remove(uint64_t id);
  // Calls all listeners; returns the first error.
  absl::Status Commit(uint64_t save);

  // Called when the dataset is at its end, before its owner learns of that. Waits until no other
  // reader can get the elements that were delivered. Returns the first error. Listeners added by
  // AddEnd() are kept as long as this object lives.
  using EndListener = std::function<absl::Status()>;
  void AddEnd(EndListener listener);
  absl::Status AwaitEnd();

  // Notes that reading was stopped on purpose (Iterator::Stop). Returns when all parties concerned
  // have been notified, or after `bound`. Listeners added by AddStop() are kept as long as this
  // object lives. RunContext::stop cannot replace Stop(): nobody waits for the work that a token's
  // callbacks begin.
  using StopListener = std::function<void(absl::Duration bound)>;
  void AddStop(StopListener listener);
  void Stop(absl::Duration bound);

 private:
  Mutex mu_;
  uint64_t last_id_ GUARDED_BY(mu_) = 0;
  std::map<uint64_t, Listener> listeners_ GUARDED_BY(mu_);
  std::vector<EndListener> end_listeners_ GUARDED_BY(mu_);
  std::vector<StopListener> stop_listeners_ GUARDED_BY(mu_);
};

class KeptAcrossPasses;  // kept_across_passes.h
class StateExchange;     // state_sections.h

// State that all nodes of one running dataset share.
struct RunContext {
  uint64_t seed = 0;                // for seeds left open by the definition
  int64_t repetition = 0;           // of the iteration, or the dataset's epoch (epochs.h)
  bool of_dataset = false;          // runs of the dataset share its nodes' KeptByNode
  uint64_t partition = 0;           // 0: the whole dataset
  bool same_elsewhere = false;      // all partitions make the same elements, then divide them
  int64_t hint_shards = 0;          // replaces kShardHint; 0: no hint is allowed
  int64_t hint_index = 0;           // in [0, hint_shards)
  SplitFeed* splits = nullptr;      // nullptr: sources read everything
  const SplitPlan* plan = nullptr;  // resolved file lists; set if `splits` is set
  Pool* pool = nullptr;             // elements are written here; nullptr: DefaultPool()
  // Memory for the elements of the last node, whether it makes them or passes them on
  // (NodeKind::hands_on); nullptr: `pool`. With `output_ahead` this includes elements that a node
  // reads ahead: the node then holds output memory. Workers leave `output_ahead` false, since their
  // output is clients' slots.
  Pool* output = nullptr;
  bool output_ahead = false;
  // The last node's elements are sent on before they are requested, as on a worker. A Prefetch at
  // the end is then left out: it would only hold the elements a second time, outside clients'
  // slots.
  bool sent_ahead = false;
  Files* files = nullptr;                 // nullptr: DefaultFiles()
  Files* cache_files = nullptr;           // for Cache(filename); nullptr: LocalFiles()
  Disk* cache_disk = nullptr;             // for Cache(filename); nullptr: LocalDisk()
  int threads = 0;                        // for parallel nodes; 0: one per core
  std::stop_token stop;                   // once requested, long waits end with Cancelled
  CommitListeners* commits = nullptr;     // nullptr: no state is committed
  KeptAcrossPasses* kept = nullptr;       // until the run ends; set if `commits` is set
  std::shared_ptr<StateExchange> states;  // nullptr: states are only positions
  Profile* profile = nullptr;             // nullptr: nothing is counted
  ThreadPool* calls = nullptr;            // for parallel nodes; nullptr: ThreadPool::OfProcess()
  ReadAheadBudget* read_ahead = nullptr;  // nullptr: ReadAheadBudget::OfProcess()
  BufferAccount* buffers = nullptr;       // for elements that nodes keep; nullptr: no limit
  std::shared_ptr<PythonHost> python;     // nullptr: PythonHost::OfProcess()
};

// Builds the iterator of `dataset` (with all its inputs). `context` must outlive the iterator.
// NotFound for a registered function that this program lacks.
absl::StatusOr<std::unique_ptr<NodeIterator>> BuildIterator(const Dataset& dataset,
                                                            const RunContext& context);

// Saves a whole iterator as bytes, preceded by a version and the dataset's fingerprint.
// CommitListeners identify the state by the number `save`.
absl::StatusOr<std::string> SaveIterator(NodeIterator& iterator, const Dataset& dataset,
                                         uint64_t save = 0);
// Restores a whole iterator. InvalidArgument for a position of a different dataset, naming the
// nodes that differ, or only the first one if the numbers of nodes differ; FailedPrecondition for a
// version that this release does not restore; DataLoss for bytes that SaveIterator() does not
// write.
absl::Status RestoreIterator(NodeIterator& iterator, const Dataset& dataset,
                             std::string_view bytes);

}  // namespace penstock
