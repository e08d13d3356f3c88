// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/engine/build_site.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "control/env/files_until.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/engine/profile.h"
#include "dataplane/dataset/engine/read_ahead.h"
#include "dataplane/dataset/engine/static_shard.h"
#include "dataplane/dataset/expr/bound_function.h"
#include "dataplane/dataset/expr/python_host.h"
#include "dataplane/dataset/graph/registry.h"
#include "dataplane/memory/catch_exhausted.h"
#include "penstock/check.h"
#include "penstock/status.h"

namespace penstock {

namespace {

// True if the node holds elements that its reader has not requested yet.
bool ReadsAhead(const Dataset::Node& node) {
  return node.op == "Prefetch";
}

// Returns the number of the last node that runs. Nodes that `run` leaves out, and the Options after
// them, do not count.
int LastOf(const NodePtr& root, const RunContext& run) {
  const Dataset::Node* node = root.get();
  while (run.sent_ahead && (node->op == "Options" || ReadsAhead(*node)))
    node = node->inputs[0].get();
  return node->size - 1;
}

}  // namespace

struct BuildSite::Shared {
  NodePtr root;                  // keeps all nodes and functions alive
  int last = 0;                  // number of the node whose elements the run outputs
  std::shared_ptr<Files> files;  // files that functions read; a wait for a file ends with the run
  Mutex mu;
  absl::flat_hash_map<const FunctionDef*, std::shared_ptr<const BoundFunction>> bound
      GUARDED_BY(mu);
};

BuildSite BuildSite::Root(NodePtr root, const RunContext& run) {
  BuildSite site;
  site.shared_ = std::make_shared<Shared>();
  site.shared_->root = root;
  site.shared_->last = LastOf(root, run);
  site.number_ = root->size - 1;
  site.hands_on_ = FindNodeKind(root->op)->hands_on;
  site.node_ = std::move(root);
  site.run_ = &run;
  site.shared_->files = std::make_shared<FilesUntil>(site.files(), run.stop);
  return site;
}

Pool& BuildSite::pool() const {
  if (output() != nullptr && !hands_on_) return *output();
  return run_->pool == nullptr ? DefaultPool() : *run_->pool;
}

Files& BuildSite::files() const {
  return run_->files == nullptr ? DefaultFiles() : *run_->files;
}

absl::StatusOr<std::unique_ptr<File>> BuildSite::OpenFile(const std::string& file) const {
  absl::StatusOr<std::unique_ptr<File>> opened = files().Open(file, run_->stop);
  if (opened.ok()) return opened;
  return absl::Status(opened.status().code(),
                      absl::StrCat(name(), ": ", opened.status().message()));
}

NodeProfile* BuildSite::profile() const {
  return run_->profile == nullptr ? nullptr : &run_->profile->node(number_);
}

std::shared_ptr<PythonHost> BuildSite::python() const {
  std::shared_ptr<PythonHost> host =
      run_->python == nullptr ? PythonHost::OfProcess() : run_->python;
  std::shared_ptr<PythonHost> until = host->Until(run_->stop);
  return until == nullptr ? host : until;
}

ReadAheadBudget& BuildSite::read_ahead() const {
  return run_->read_ahead == nullptr ? ReadAheadBudget::OfProcess() : *run_->read_ahead;
}

bool BuildSite::is_left_out() const {
  return !in_body_ && number_ > shared_->last;
}

absl::Status BuildSite::CheckCancelled() const {
  if (run_->stop.stop_requested())
    return absl::CancelledError(absl::StrCat(name(), ": reading was stopped"));
  return absl::OkStatus();
}

BuildSite BuildSite::InputSite(size_t i) const {
  const NodeKind& kind = *FindNodeKind(node_->op);
  const size_t plain_inputs = node_->inputs.size() - kind.bodies;
  const size_t divided_inputs = plain_inputs - kind.undivided;
  BuildSite site = *this;
  site.node_ = node_->inputs[i];
  int before = number_ - (node_->size - 1);  // the number of the first node below this node
  for (size_t k = 0; k < i; ++k) {
    before += node_->inputs[k]->size;
    if (k >= plain_inputs) continue;
    if (k < divided_inputs) site.provider_ += node_->inputs[k]->providers;
    site.first_argument_ += node_->inputs[k]->arguments.size();
  }
  site.number_ = before + site.node_->size - 1;
  site.undivided_ = undivided_ || i >= divided_inputs;
  site.hands_on_ = FindNodeKind(site.node_->op)->hands_on;
  site.gives_output_ = gives_output_ && (is_left_out() || HandsOn(i));
  return site;
}

bool BuildSite::HandsOn(size_t i) const {
  const NodeKind& kind = *FindNodeKind(node_->op);
  if (!hands_on_ || (ReadsAhead(*node_) && !run_->output_ahead)) return false;
  const size_t plain_inputs = node_->inputs.size() - kind.bodies;
  return kind.bodies > 0 ? i >= plain_inputs : i < plain_inputs - kind.undivided;
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildSite::Build() const {
  NodeProfile* const counted = profile();
  const auto build = [this] { return FindNodeKind(node_->op)->build(*this); };
  if (counted == nullptr) return build();
  absl::StatusOr<std::unique_ptr<NodeIterator>> built = CatchExhausted(counted->name, build);
  if (!built.ok()) return built;
  return Profiled(*std::move(built), *counted);
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildSite::BuildPass(size_t i, int64_t pass,
                                                                   int64_t passes) const {
  // In each pass of an outer Repeat, an unbounded Repeat inside it begins 2^32 repetitions later.
  const int64_t stride = passes >= 0 ? passes : int64_t{1} << 32;
  BuildSite site = InputSite(i);
  int64_t first;
  if (__builtin_mul_overflow(repetition_, stride, &first) ||
      __builtin_add_overflow(first, pass, &site.repetition_)) {
    return absl::OutOfRangeError(absl::StrCat(
        name(), ": more than 2^63 repetitions, including those of the enclosing Repeats"));
  }
  return site.Build();
}

KeptByNode* BuildSite::kept_by_node() const {
  const bool whole = splits() == nullptr && run_->partition == 0 && run_->hint_shards == 0;
  return run_->of_dataset && whole && !in_body_ ? &node_->kept : nullptr;
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildSite::BuildFirstPass(size_t i, SplitFeed* splits,
                                                                        uint64_t seed) const {
  BuildSite site = InputSite(i);
  site.repetition_ = 0;
  site.first_pass_ = true;
  site.seed_ = seed;
  if (splits != nullptr) site.splits_ = splits;
  return site.Build();
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildSite::BuildBody(
    size_t i, std::shared_ptr<const Element> arguments, uint64_t element) const {
  RandomKey key = Random();
  key.element = element;
  BuildSite site = InputSite(i);
  site.in_body_ = true;
  site.kept_ = nullptr;
  site.body_salt_ = RandomBits(key, 0);
  site.repetition_ = 0;
  site.arguments_ = std::move(arguments);
  site.first_argument_ = 0;
  return site.Build();
}

absl::StatusOr<std::shared_ptr<const BoundFunction>> BuildSite::Bind(
    const std::shared_ptr<const FunctionDef>& function) const {
  MutexLock lock(shared_->mu);
  std::shared_ptr<const BoundFunction>& bound = shared_->bound[function.get()];
  if (bound == nullptr) {
    absl::StatusOr<std::shared_ptr<const BoundFunction>> made =
        BindWith(function, OpMeans{.files = shared_->files, .python = python()});
    if (!made.ok()) {
      shared_->bound.erase(function.get());
      return absl::Status(made.status().code(),
                          absl::StrCat(name(), ": ", made.status().message()));
    }
    bound = *std::move(made);
  }
  return bound;
}

uint64_t BuildSite::partition() const {
  const bool same_for_all = run_->hint_shards > 0 && !StandsBehindShardHint(*node_);
  return same_for_all ? 0 : run_->partition;
}

RandomKey BuildSite::Random(bool every_repetition) const {
  auto given = node_->attrs.find("seed");
  RandomKey key;
  key.seed = given != node_->attrs.end() ? static_cast<uint64_t>(std::get<int64_t>(given->second))
                                         : seed();
  key.seed ^= body_salt_;
  if (every_repetition) {
    const uint64_t run = first_pass_ ? 0 : static_cast<uint64_t>(run_->repetition);
    key.repetition = (run << 32) + repetition_;
  }
  key.partition = partition();
  key.node = static_cast<uint32_t>(number_);
  return key;
}

std::vector<Tensor> BuildSite::argument() const {
  PENSTOCK_CHECK(arguments_ != nullptr);
  const Spec& tuple = arguments_->spec();
  size_t leaf = 0;
  for (size_t k = 0; k < first_argument_; ++k) leaf += tuple.member(k).leaves().size();
  std::vector<Tensor> tensors;
  const size_t count = tuple.member(first_argument_).leaves().size();
  for (size_t i = 0; i < count; ++i) tensors.push_back(arguments_->tensor(leaf + i));
  return tensors;
}

}  // namespace penstock
