// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/distribute.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/client/distribute_options.h"
#include "dataplane/client/explain_distribute.h"
#include "dataplane/client/job_reader.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/interruptible.h"
#include "dataplane/dataset/engine/static_shard.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "include/status_macros.h"

namespace penstock {
namespace client {
namespace {

// Reads one pass, which is one repetition of the job.
class DistributeIterator final : public NodeIterator, public ReadyHint {
 public:
  DistributeIterator(std::shared_ptr<JobReader> reader, const BuildSite& site)
      : reader_(std::move(reader)), repetition_(site.repetition()), kept_(site.kept()) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    absl::StatusOr<std::optional<Element>> next = reader_->Next(repetition_);
    const bool end = next.ok() && !next->has_value();
    if (end && kept_ != nullptr && reader_->OthersTookAll(repetition_)) kept_->NoteOthersTookAll();
    return next;
  }
  bool Ready() override { return reader_->Ready(repetition_); }
  absl::Status Save(StateWriter& writer) override { return reader_->Save(repetition_, writer); }
  absl::Status Restore(StateReader& reader) override {
    return reader_->Restore(repetition_, reader);
  }

 private:
  const std::shared_ptr<JobReader> reader_;
  const int64_t repetition_;
  KeptAcrossPasses* const kept_;  // nullptr: there is only one pass
};

// Returns InvalidArgument for a dataset that itself reads through a service, because workers do not
// pass on elements of other workers.
absl::Status CheckMoves(const Dataset::Node& root) {
  absl::Status status;
  VisitNodes(root, [&](const Dataset::Node& node, int number) {
    if (node.op != "Distribute") return;
    status.Update(absl::InvalidArgumentError(
        absl::StrCat(NodeName(node, number),
                     " is before it; elements that are read through a service cannot be prepared "
                     "by workers again: use Distribute once")));
  });
  return status;
}

// Returns InvalidArgument if the input is Rounds (directly, or through nodes that keep each
// element's place) and makes rounds for a number of consumers other than num_consumers.
absl::Status CheckRounds(const Dataset::Node& root, const Attrs& attrs) {
  const Dataset::Node* node = &root;
  while (node->op == "Prefetch" || node->op == "Options" || node->op == "Map") {
    node = node->inputs[0].get();
  }
  if (node->op != "Rounds") return absl::OkStatus();
  const int64_t rounds = Get<int64_t>(node->attrs, "num_consumers");
  const auto consumers = attrs.find("num_consumers");
  if (consumers == attrs.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Rounds(", rounds, ") is for coordinated reads; set num_consumers and consumer_index"));
  }
  if (Get<int64_t>(attrs, "order") == static_cast<int64_t>(MergeOrder::kDeterministic)) {
    return absl::InvalidArgumentError(
        absl::StrCat("Rounds(", rounds,
                     ") is for coordinated reads, but order kDeterministic deals element by "
                     "element; leave out one of them"));
  }
  const int64_t given = std::get<int64_t>(consumers->second);
  if (rounds % given == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("num_consumers is ", given, ", but Rounds(", rounds,
                   ") makes rounds for a different number; use the same number for both"));
}

absl::StatusOr<Inferred> InferDistribute(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  ASSIGN_OR_RETURN(const DistributeOptions options, FromAttrs(attrs));
  RETURN_IF_ERROR(Check(options));
  const bool by_id = attrs.contains("dataset_id");
  if (by_id != inputs.empty() || by_id != attrs.contains("spec")) {
    return absl::InvalidArgumentError("it takes either an input or dataset_id and spec");
  }
  const auto mode = static_cast<ShardingPolicy>(Get<int64_t>(attrs, "processing_mode"));
  if (!by_id) {
    RETURN_IF_ERROR(CheckMoves(*inputs[0]));
    RETURN_IF_ERROR(CheckRounds(*inputs[0], attrs));
    RETURN_IF_ERROR(CheckShardable(DatasetOf(inputs[0]), mode));
  }
  const Cardinality of = by_id ? Get<int64_t>(attrs, "cardinality") : inputs[0]->cardinality;
  if (attrs.contains("trainer_id") && of >= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cross-trainer caching requires an infinite dataset, but this one has cardinality ", of,
        "; put .Repeat() before Distribute"));
  }
  // This reader's part depends on the other readers and, in mode OFF, on the number of workers.
  const Cardinality here = of == kInfinite || of == 0 ? of : kUnknown;
  return Inferred{by_id ? Get<Spec>(attrs, "spec") : inputs[0]->spec, here};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildDistribute(const BuildSite& site) {
  return std::make_unique<DistributeIterator>(JobReader::Of(site), site);
}

void RegisterOnce() {
  static const bool registered = [] {
    RegisterNodeKind(DistributeKind());
    return true;
  }();
  (void)registered;
}

}  // namespace

NodeKind DistributeKind() {
  std::vector<AttrRule> attrs = DistributeRules();
  attrs.push_back({"dataset_id", AttrType::kString, false});
  attrs.push_back({"spec", AttrType::kSpec, false});
  attrs.push_back({"cardinality", AttrType::kInt, false});
  return {.op = "Distribute",
          .attrs = std::move(attrs),
          .min_inputs = 0,
          .max_inputs = 1,
          .elsewhere = true,
          .infer = InferDistribute,
          .build = BuildDistribute,
          .explain_details = ExplainDistribute};
}

Dataset DistributeFromId(std::string dataset_id, const Spec& spec, Cardinality cardinality,
                         const DistributeOptions& options) {
  RegisterOnce();
  Attrs attrs = ToAttrs(options);
  attrs["dataset_id"] = std::move(dataset_id);
  attrs["spec"] = spec;
  attrs["cardinality"] = cardinality;
  return DatasetOf(MakeNode("Distribute", std::move(attrs), {}));
}

}  // namespace client

Dataset Dataset::Distribute(DistributeOptions options) const {
  client::RegisterOnce();
  return DatasetOf(MakeNode("Distribute", client::ToAttrs(options), {node_}));
}

}  // namespace penstock
