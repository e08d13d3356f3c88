// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/shard_files.h"

#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/static_shard.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/registry.h"
#include "dataplane/dataset/graph/split.h"
#include "include/status_macros.h"

namespace penstock::replica {
namespace {

// The splits of one shard, in the order in which they are read. Any thread.
class FilesOfShard final : public SplitFeed {
 public:
  FilesOfShard(SplitPlan plan, uint64_t seed, int64_t epoch, int64_t shards, int64_t index)
      : plan_(std::move(plan)), seed_(seed), epoch_(epoch), shards_(shards), index_(index) {}

  const SplitPlan& plan() const { return plan_; }

  absl::StatusOr<std::optional<int64_t>> Get(int provider, int64_t repetition,
                                             int64_t ordinal) override {
    const SplitProviderPlan& source = plan_.providers[provider];
    const int64_t place = index_ + ordinal * shards_;
    if (place >= source.count) return std::nullopt;
    if (!source.shuffled) return place;
    MutexLock lock(mu_);
    return Order(provider, repetition)[place];
  }

 private:
  const std::vector<int64_t>& Order(int provider, int64_t repetition) REQUIRES(mu_) {
    auto& [of_repetition, order] = orders_[provider];
    if (of_repetition == repetition) return order;
    const SplitProviderPlan& source = plan_.providers[provider];
    of_repetition = repetition;
    order.resize(static_cast<size_t>(source.count));
    std::iota(order.begin(), order.end(), 0);
    RandomKey key{.seed = source.seeded ? source.seed : seed_,
                  .repetition = static_cast<uint64_t>((epoch_ << 32) + repetition),
                  .node = static_cast<uint32_t>(provider)};
    for (size_t i = order.size(); i > 1; --i) {
      key.element = i;
      std::swap(order[i - 1], order[RandomBits(key, 0) % i]);
    }
    return order;
  }

  const SplitPlan plan_;
  const uint64_t seed_;
  const int64_t epoch_;
  const int64_t shards_;
  const int64_t index_;
  Mutex mu_;
  // By provider: the current repetition, and the order of the splits in it.
  std::map<int, std::pair<std::optional<int64_t>, std::vector<int64_t>>> orders_ GUARDED_BY(mu_);
};

// Runs its input with the splits of one shard, in a run of its own.
class ShardFilesIterator final : public NodeIterator {
 public:
  ShardFilesIterator(const BuildSite& site, SplitPlan plan)
      : files_(std::move(plan), site.seed(), site.run().repetition,
               site.attr<int64_t>("num_shards"), site.attr<int64_t>("index")),
        run_(site.run()) {
    run_.splits = &files_;
    run_.plan = &files_.plan();
  }

  absl::Status Build(const NodePtr& input) {
    // The nodes of this run have the same numbers as in the whole tree, because the path from the
    // root to this input goes through the first input of each node.
    ASSIGN_OR_RETURN(input_, BuildSite::Root(input, run_).Build());
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<Element>> Next() override { return input_->Next(); }
  absl::StatusOr<bool> NextInto(ResultSink& sink) override { return input_->NextInto(sink); }
  absl::StatusOr<int64_t> Skip(int64_t count) override { return input_->Skip(count); }
  absl::Status Save(StateWriter& writer) override { return input_->Save(writer); }
  absl::Status Restore(StateReader& reader) override { return input_->Restore(reader); }

 private:
  FilesOfShard files_;
  RunContext run_;
  std::unique_ptr<NodeIterator> input_;
};

absl::StatusOr<Inferred> InferShardFiles(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const auto shards = Get<int64_t>(attrs, "num_shards");
  const auto index = Get<int64_t>(attrs, "index");
  if (shards < 1 || index < 0 || index >= shards)
    return absl::InvalidArgumentError(
        absl::StrCat("shard ", index, " does not exist; the number of shards is ", shards));
  const Cardinality of = inputs[0]->cardinality;
  return Inferred{inputs[0]->spec, of == kInfinite || of == 0 ? of : kUnknown};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildShardFiles(const BuildSite& site) {
  const NodePtr& input = site.node().inputs[0];
  ASSIGN_OR_RETURN(SplitPlan plan, PlanSplits(DatasetOf(input), site.files()));
  auto iterator = std::make_unique<ShardFilesIterator>(site, std::move(plan));
  RETURN_IF_ERROR(iterator->Build(input));
  return iterator;
}

NodeKind ShardFilesKind() {
  return {.op = "ShardFiles",
          .attrs = {{"num_shards", AttrType::kInt}, {"index", AttrType::kInt}},
          .infer = InferShardFiles,
          .build = BuildShardFiles};
}

}  // namespace

absl::Status CheckFiles(const Dataset& dataset, int64_t shards) {
  ASSIGN_OR_RETURN(const SplitPlan plan, PlanSplits(dataset));
  const std::vector<bool> are_files = SplitsAreFiles(dataset, plan);
  if (plan.providers.empty()) {
    return absl::NotFoundError(
        "auto_shard kFile found no source of files that it could divide; use kData or kOff");
  }
  for (size_t p = 0; p < plan.providers.size(); ++p) {
    const SplitProviderPlan& source = plan.providers[p];
    if (!are_files[p] || source.count < 0) {
      return absl::NotFoundError(absl::StrCat("auto_shard kFile found an unshardable source, ",
                                              source.node,
                                              ": it does not read files one by one; use kData, "
                                              "kOff, or kAuto, which takes kData then"));
    }
    if (source.count > 0 && source.count < shards) {
      return absl::InvalidArgumentError(
          absl::StrCat("auto_shard kFile: ", source.node, " has only ", source.count,
                       " file(s), which is not enough for ", shards,
                       " input pipelines; use fewer, kData, or kAuto, which takes kData then"));
    }
  }
  return absl::OkStatus();
}

Dataset ShardFiles(const Dataset& dataset, int64_t shards, int64_t index) {
  static const bool registered = (RegisterNodeKind(ShardFilesKind()), true);
  (void)registered;
  return DatasetOf(
      MakeNode("ShardFiles", {{"num_shards", shards}, {"index", index}}, {NodeOf(dataset)}));
}

}  // namespace penstock::replica
