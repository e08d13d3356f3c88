// SPDX-License-Identifier: Apache-2.0
// A BuildSite says where a node's iterator is built: the node, its place in the graph, and the
// objects that all nodes of the running dataset share. A BuildSite is a value. Iterators that build
// their input again (Repeat) or build bodies (FlatMap) keep a copy.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "control/env/files.h"
#include "dataplane/dataset/engine/kept_across_passes.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/graph/graph.h"
#include "penstock/tensor.h"

namespace penstock {

struct NodeProfile;  // dataplane/dataset/engine/profile.h

class BuildSite {
 public:
  // Returns the site of a whole dataset's last node. `root` and `run` outlive all iterators built
  // from it.
  static BuildSite Root(NodePtr root, const RunContext& run);

  const Dataset::Node& node() const { return *node_; }
  // Identifies the node, even after this iterator has been destroyed.
  const NodePtr& node_ptr() const { return node_; }
  const Spec& spec() const { return node_->spec; }
  template <class T>
  const T& attr(const std::string& name) const {
    return Get<T>(node_->attrs, name);
  }
  const RunContext& run() const { return *run_; }
  Pool& pool() const;
  // Returns the pool for the run's elements if this node produces them; otherwise nullptr. The pool
  // is RunContext::output unless WithOutput() replaced it.
  Pool* output() const { return !gives_output_ ? nullptr : output_ ? output_ : run_->output; }
  // Returns a copy of this site whose output is made in `output`, as is the output of all sites
  // below the copy.
  BuildSite WithOutput(Pool& output) const {
    BuildSite site = *this;
    site.output_ = &output;
    return site;
  }
  Files& files() const;
  // Opens a file from files(). A wait for the file ends when the running dataset is cancelled.
  // Errors name this node.
  absl::StatusOr<std::unique_ptr<File>> OpenFile(const std::string& name) const;
  // Prefetch: true if this run leaves the node out (RunContext::sent_ahead).
  bool is_left_out() const;
  int threads() const { return threads_ > 0 ? threads_ : run_->threads; }  // 0: one per core
  int number() const { return number_; }  // this node's number in the graph
  std::string name() const { return NodeName(*node_, number_); }
  // The node's counts; nullptr: nothing is counted.
  NodeProfile* profile() const;
  ReadAheadBudget& read_ahead() const;
  std::shared_ptr<PythonHost> python() const;  // runs the node's Python functions and generators
  // Returns Cancelled once the running dataset is cancelled. For loops that may take a long time.
  absl::Status CheckCancelled() const;

  // --- Building inputs and bodies ----------------------------------------------
  absl::StatusOr<std::unique_ptr<NodeIterator>> BuildInput(size_t i) const {
    return InputSite(i).Build();
  }
  // Returns the site of input `i`, for a node that also does the work of its input.
  BuildSite InputSite(size_t i) const;
  // Options: returns a copy of this site with `threads` threads. All sites below the copy have that
  // number of threads too.
  BuildSite WithThreads(int threads) const {
    BuildSite site = *this;
    site.threads_ = threads;
    return site;
  }
  // Repeat: builds input `i` for pass `pass` of `passes` (kForever: unbounded). Each pass is a
  // repetition of its own: the sources ask for that repetition's splits, and the random nodes draw
  // that repetition's random numbers. Every pass builds the input again.
  absl::StatusOr<std::unique_ptr<NodeIterator>> BuildPass(size_t i, int64_t pass,
                                                          int64_t passes) const;
  // Repeat: returns a copy of this site. The copy and all sites below it use `kept` for the state
  // that outlasts a pass. `kept` must live as long as the iterators of these sites. If there is a
  // Repeat above this one, that Repeat's object is used instead.
  BuildSite Keeping(KeptAcrossPasses& kept) const {
    BuildSite site = *this;
    if (site.kept_ == nullptr) site.kept_ = &kept;
    return site;
  }
  KeptAcrossPasses* kept() const { return kept_; }  // nullptr if there is only one pass
  // Cache: the state of this node that all runs of the dataset share. nullptr if this run reads
  // only a part of the dataset, or if the node is inside a body, which is opened many times.
  KeptByNode* kept_by_node() const;
  // Cache: true if this Cache is below another Cache. This Cache's elements must then be made with
  // seed().
  bool in_first_pass() const { return first_pass_; }
  // Cache: builds input `i` as a run with `seed` reads it in the first pass of the first
  // repetition, even if this is a later pass. The input's sources take splits from `splits` if that
  // is not null, otherwise from the run's feed.
  absl::StatusOr<std::unique_ptr<NodeIterator>> BuildFirstPass(size_t i, SplitFeed* splits,
                                                               uint64_t seed) const;
  // FlatMap: builds body `i`, opened by outer element number `element`. The body's sources take
  // `arguments` (see BodyOpener in body.h).
  absl::StatusOr<std::unique_ptr<NodeIterator>> BuildBody(size_t i,
                                                          std::shared_ptr<const Element> arguments,
                                                          uint64_t element) const;
  // Builds this node's own iterator.
  absl::StatusOr<std::unique_ptr<NodeIterator>> Build() const;
  // Makes the function ready to run. Each function is bound once per running dataset.
  absl::StatusOr<std::shared_ptr<const BoundFunction>> Bind(
      const std::shared_ptr<const FunctionDef>& function) const;

  // --- Randomness --------------------------------------------------------------
  // The run's seed; below a Cache, the seed of the run that the Cache is filled for.
  uint64_t seed() const { return seed_.value_or(run_->seed); }
  // Returns the key for this node's random draws, with `element` not set. The key's seed is the
  // integer attribute "seed" if the node has one, else seed(). If `every_repetition` is false, the
  // draws are the same in each repetition.
  RandomKey Random(bool every_repetition = true) const;
  // The run's partition, or 0 if this node must produce the same elements in every partition.
  uint64_t partition() const;

  // --- For sources -------------------------------------------------------------
  // nullptr: read everything. Always nullptr inside a body or an undivided input.
  SplitFeed* splits() const {
    if (in_body_ || undivided_) return nullptr;
    return splits_ != nullptr ? splits_ : run_->splits;
  }
  bool in_body() const { return in_body_; }
  int provider() const { return provider_; }          // this source's number, if it can be divided
  int64_t repetition() const { return repetition_; }  // 0 except below Repeat
  // Returns the leaves of the argument, for a source that takes one. Valid as long as the iterator
  // keeps a copy of this site.
  std::vector<Tensor> argument() const;

 private:
  struct Shared;  // the bound functions, for all sites of one running dataset

  BuildSite() = default;
  // True if this node passes on elements of input `i` unchanged, in output memory, and does not
  // keep them.
  bool HandsOn(size_t i) const;

  NodePtr node_;
  const RunContext* run_ = nullptr;
  std::shared_ptr<Shared> shared_;
  int number_ = 0;
  int threads_ = 0;  // 0: the run's
  int provider_ = 0;
  int64_t repetition_ = 0;
  bool hands_on_ = false;     // a copy of NodeKind::hands_on, whose lookup takes a lock
  bool gives_output_ = true;  // the run outputs this node's elements
  Pool* output_ = nullptr;    // nullptr: the run's
  bool in_body_ = false;
  bool undivided_ = false;
  bool first_pass_ = false;           // Random() draws as in RunContext::repetition 0
  std::optional<uint64_t> seed_;      // nullopt: the run's
  SplitFeed* splits_ = nullptr;       // nullptr: the run's
  KeptAcrossPasses* kept_ = nullptr;  // owned by the outermost Repeat above
  uint64_t body_salt_ = 0;            // differs in each opening of a body
  std::shared_ptr<const Element> arguments_;
  size_t first_argument_ = 0;
};

}  // namespace penstock
