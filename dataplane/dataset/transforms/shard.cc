// SPDX-License-Identifier: Apache-2.0
// Dataset::Shard: elements i, i + n, i + 2n, … of its input. An error that takes the place of an
// element is in the shard of that element.
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/static_shard.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "include/status_macros.h"
#include "penstock/sharding.h"

namespace penstock {
namespace {

class ShardIterator final : public NodeIterator {
 public:
  ShardIterator(std::unique_ptr<NodeIterator> input, int64_t shards, int64_t index)
      : input_(std::move(input), kRememberSeldom), shards_(shards), index_(index) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    RETURN_IF_ERROR(Approach().status());
    absl::StatusOr<std::optional<Element>> next = input_.Next();
    Pass();
    return next;
  }

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    RETURN_IF_ERROR(Approach().status());
    absl::StatusOr<bool> next = input_.NextInto(sink);
    Pass();
    return next;
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    if (count == 0) return 0;
    ASSIGN_OR_RETURN(const bool there, Approach());
    if (!there) return 0;
    // From here, the shard's next elements are 0, n, 2n, … elements away.
    int64_t places;
    if (__builtin_mul_overflow(count - 1, shards_, &places))
      places = std::numeric_limits<int64_t>::max() - 1;
    ASSIGN_OR_RETURN(const int64_t passed, input_.Skip(places + 1));
    Pass();
    return (passed + shards_ - 1) / shards_;
  }

  absl::Status Save(StateWriter& writer) override { return input_.Save(writer, passed_); }

  absl::Status Restore(StateReader& reader) override {
    RETURN_IF_ERROR(input_.Restore(reader));
    passed_ = input_.pulled();
    return absl::OkStatus();
  }

 private:
  // Skips the elements of other shards. False if the input ended there.
  absl::StatusOr<bool> Approach() {
    const int64_t away = (index_ - input_.pulled() % shards_ + shards_) % shards_;
    ASSIGN_OR_RETURN(const int64_t passed, input_.Skip(away));
    return passed == away;
  }

  void Pass() {
    passed_ = input_.pulled();
    input_.Release(passed_);
  }

  PositionedInput input_;
  const int64_t shards_;
  const int64_t index_;
  int64_t passed_ = 0;  // elements of the input up to the last one returned
};

absl::StatusOr<Inferred> InferShard(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const int64_t shards = Get<int64_t>(attrs, "num_shards");
  const int64_t index = Get<int64_t>(attrs, "index");
  const Cardinality of = inputs[0]->cardinality;
  if (shards == kShardHint) {  // known only when the dataset runs
    return Inferred{inputs[0]->spec, of == kInfinite || of == 0 ? of : kUnknown};
  }
  if (shards < 1) {
    return absl::InvalidArgumentError(absl::StrCat("num_shards must be at least 1, not ", shards));
  }
  if (index < 0 || index >= shards) {
    return absl::InvalidArgumentError(
        absl::StrCat("index must be in [0, num_shards), which is [0, ", shards, "), not ", index));
  }
  return Inferred{inputs[0]->spec, of >= 0 ? of / shards + (of % shards > index ? 1 : 0) : of};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildShard(const BuildSite& site) {
  auto shards = site.attr<int64_t>("num_shards");
  auto index = site.attr<int64_t>("index");
  if (shards == kShardHint) {
    shards = site.run().hint_shards;
    index = site.run().hint_index;
    if (shards == 0) return HintWithoutPolicy(site.name());
  }
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return ShardOfIterator(std::move(input), shards, index);
}

}  // namespace

std::unique_ptr<NodeIterator> ShardOfIterator(std::unique_ptr<NodeIterator> input, int64_t shards,
                                              int64_t index) {
  return std::make_unique<ShardIterator>(std::move(input), shards, index);
}

NodeKind ShardKind() {
  return {.op = "Shard",
          .attrs = {{"num_shards", AttrType::kInt}, {"index", AttrType::kInt}},
          .hands_on = true,
          .infer = InferShard,
          .build = BuildShard};
}

Dataset Dataset::Shard(int64_t num_shards, int64_t index) const {
  return DatasetOf(MakeNode("Shard", {{"num_shards", num_shards}, {"index", index}}, {node_}));
}

}  // namespace penstock
