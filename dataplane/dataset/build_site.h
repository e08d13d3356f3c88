// SPDX-License-Identifier: Apache-2.0
// Where a node's iterator is built: the node, its place in the graph, and what
// the running dataset shares. A value; iterators that build their input again
// (Repeat) or build bodies (FlatMap) keep a copy.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "control/env/files.h"
#include "dataplane/dataset/function.h"
#include "dataplane/dataset/graph.h"
#include "dataplane/dataset/kept_across_passes.h"
#include "dataplane/dataset/node_iterator.h"
#include "penstock/tensor.h"

namespace penstock {

struct NodeProfile;  // dataplane/dataset/profile.h

class BuildSite {
 public:
  // The site of a whole dataset's last node. `root` and `run` outlive all
  // iterators built from it.
  static BuildSite Root(NodePtr root, const RunContext& run);

  const Dataset::Node& node() const { return *node_; }
  const NodePtr& node_ptr() const { return node_; }  // who it is, beyond this iterator
  const Spec& spec() const { return node_->spec; }
  template <class T>
  const T& attr(const std::string& name) const {
    return Get<T>(node_->attrs, name);
  }
  const RunContext& run() const { return *run_; }
  Pool& pool() const;
  // RunContext::output where the elements of this node are those of the run; else nullptr.
  Pool* output() const { return !gives_output_ ? nullptr : output_ ? output_ : run_->output; }
  // The same for all below, but for where output is made.
  BuildSite WithOutput(Pool& output) const {
    BuildSite site = *this;
    site.output_ = &output;
    return site;
  }
  Files& files() const;
  // Opens a file of files(), until the running dataset is cancelled; the error
  // names this node.
  absl::StatusOr<std::unique_ptr<File>> OpenFile(const std::string& name) const;
  // Prefetch: whether this run leaves it out (RunContext::sent_ahead).
  bool is_left_out() const;
  int threads() const { return threads_ > 0 ? threads_ : run_->threads; }  // 0: one per core
  int number() const { return number_; }  // of the node in the graph
  std::string name() const { return NodeName(*node_, number_); }
  // What this node did; nullptr if nobody asks.
  NodeProfile* profile() const;
  ReadAheadBudget& read_ahead() const;
  std::shared_ptr<PythonHost> python() const;  // runs its functions and generators in Python
  // Cancelled once the running dataset was cancelled; for loops that may take long.
  absl::Status CheckCancelled() const;

  // --- Building below --------------------------------------------------------
  absl::StatusOr<std::unique_ptr<NodeIterator>> BuildInput(size_t i) const {
    return InputSite(i).Build();
  }
  // Where input `i` will be built, for a node that does its input's work too.
  BuildSite InputSite(size_t i) const;
  // Options: the same for all below, with so many threads.
  BuildSite WithThreads(int threads) const {
    BuildSite site = *this;
    site.threads_ = threads;
    return site;
  }
  // Repeat: input `i` for pass number `pass` of `passes` (kForever: unbounded).
  // Sources then ask for the splits of, and random nodes draw for, another
  // repetition. A pass is begun by building the input anew.
  absl::StatusOr<std::unique_ptr<NodeIterator>> BuildPass(size_t i, int64_t pass,
                                                          int64_t passes) const;
  // Repeat: the same for all below, with a place for what outlasts a pass, which
  // lives as long as their iterators; that of a Repeat further up, if there is one.
  BuildSite Keeping(KeptAcrossPasses& kept) const {
    BuildSite site = *this;
    if (site.kept_ == nullptr) site.kept_ = &kept;
    return site;
  }
  KeptAcrossPasses* kept() const { return kept_; }  // nullptr: there is one pass only
  // Cache: what all runs of the dataset share at this node; nullptr where this run reads a part
  // of its own, or one of many openings of a function.
  KeptByNode* kept_by_node() const;
  // Cache: whether this is below another, which must find here what seed() draws.
  bool in_first_pass() const { return first_pass_; }
  // Cache: input `i` as the first pass of the first repetition of a run with that seed
  // reads it, whichever this one is. Its sources ask `splits`, if given, in place of the run's.
  absl::StatusOr<std::unique_ptr<NodeIterator>> BuildFirstPass(size_t i, SplitFeed* splits,
                                                               uint64_t seed) const;
  // FlatMap: body `i`, whose sources take `arguments` (see BodyFunction in
  // body.h), opened by the outer element number `element`.
  absl::StatusOr<std::unique_ptr<NodeIterator>> BuildBody(size_t i,
                                                          std::shared_ptr<const Element> arguments,
                                                          uint64_t element) const;
  // This node's own iterator.
  absl::StatusOr<std::unique_ptr<NodeIterator>> Build() const;
  // The function made ready; bound once per running dataset.
  absl::StatusOr<std::shared_ptr<const BoundFunction>> Bind(
      const std::shared_ptr<const FunctionDef>& function) const;

  // --- Randomness --------------------------------------------------------------
  // That of the run, but below a Cache that is filled as another run would.
  uint64_t seed() const { return seed_.value_or(run_->seed); }
  // The key for random draws of this node, `element` not yet set. The seed is
  // the integer attribute "seed" if the node has it, else seed().
  // `every_repetition` false: the same in each repetition.
  RandomKey Random(bool every_repetition = true) const;
  // That of the run; 0 also where this node has to give the same in each partition.
  uint64_t partition() const;

  // --- For sources -------------------------------------------------------------
  // nullptr: read everything. Always so inside a body or an undivided input.
  SplitFeed* splits() const {
    if (in_body_ || undivided_) return nullptr;
    return splits_ != nullptr ? splits_ : run_->splits;
  }
  bool in_body() const { return in_body_; }
  int provider() const { return provider_; }          // this source's number, if it is one
  int64_t repetition() const { return repetition_; }  // 0 but below Repeat
  // The argument of a source that takes one: its leaves, as long as the
  // iterator keeps a copy of this site.
  std::vector<Tensor> argument() const;

 private:
  struct Shared;  // what is bound, for all sites of one running dataset

  BuildSite() = default;
  // Whether this node gives elements of input `i` as they are, in output that is not held.
  bool HandsOn(size_t i) const;

  NodePtr node_;
  const RunContext* run_ = nullptr;
  std::shared_ptr<Shared> shared_;
  int number_ = 0;
  int threads_ = 0;  // 0: as the run says
  int provider_ = 0;
  int64_t repetition_ = 0;
  bool hands_on_ = false;     // NodeKind's, which is looked up under a lock
  bool gives_output_ = true;  // what it gives is what the run gives
  Pool* output_ = nullptr;    // nullptr: the run's
  bool in_body_ = false;
  bool undivided_ = false;
  bool first_pass_ = false;           // whatever repetition of the run
  std::optional<uint64_t> seed_;      // nullopt: the run's
  SplitFeed* splits_ = nullptr;       // nullptr: the run's
  KeptAcrossPasses* kept_ = nullptr;  // owned by the outermost Repeat above
  uint64_t body_salt_ = 0;            // differs for each opening of a body
  std::shared_ptr<const Element> arguments_;
  size_t first_argument_ = 0;
};

}  // namespace penstock
