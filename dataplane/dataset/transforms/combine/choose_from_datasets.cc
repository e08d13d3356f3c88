// SPDX-License-Identifier: Apache-2.0
// Dataset::ChooseFromDatasets: a dataset of numbers selects the dataset of the next element.
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/decides_by_value.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/combine/chosen_inputs.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

class ChoiceOfDataset final : public Choice {
 public:
  explicit ChoiceOfDataset(std::unique_ptr<NodeIterator> numbers) : numbers_(std::move(numbers)) {}

  absl::StatusOr<std::optional<size_t>> Next(const std::vector<bool>& goes_on) override {
    ASSIGN_OR_RETURN(const std::optional<Element> next, numbers_->Next());
    if (!next.has_value()) return std::nullopt;
    const auto number = next->tensor(0).scalar<int64_t>();
    if (number >= 0 && static_cast<size_t>(number) < goes_on.size())
      return static_cast<size_t>(number);
    return absl::InvalidArgumentError(absl::StrCat(
        "choice_dataset produced ", number, ", but the datasets are 0 to ", goes_on.size() - 1));
  }

  absl::Status Save(StateWriter& writer) override { return numbers_->Save(writer); }
  absl::Status Restore(StateReader& reader) override { return numbers_->Restore(reader); }

 private:
  std::unique_ptr<NodeIterator> numbers_;
};

absl::StatusOr<Inferred> InferChoose(const Attrs&, absl::Span<const NodePtr> inputs) {
  const Dataset::Node& choice = *inputs.back();
  const absl::Span<const NodePtr> datasets = inputs.first(inputs.size() - 1);
  if (choice.spec != Spec(Scalar(kInt64))) {
    return absl::InvalidArgumentError(
        absl::StrCat("choice_dataset must produce int64 scalars, not ", choice.spec.ToString()));
  }
  RETURN_IF_ERROR(CheckDeterministic(choice));
  ASSIGN_OR_RETURN(Spec spec, SpecOfAny(datasets));
  bool endless = true;
  for (const NodePtr& dataset : datasets) endless = endless && dataset->cardinality == kInfinite;
  const bool by_choice = endless || choice.cardinality == 0;
  return Inferred{std::move(spec), by_choice ? choice.cardinality : kUnknown};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildChoose(const BuildSite& site) {
  const size_t count = site.node().inputs.size() - 1;
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> numbers, site.BuildInput(count));
  return ReadChosen(site, count, std::make_unique<ChoiceOfDataset>(std::move(numbers)),
                    site.attr<bool>("stop_on_empty_dataset"));
}

}  // namespace

NodeKind ChooseFromDatasetsKind() {
  return {.op = "ChooseFromDatasets",
          .attrs = {{"stop_on_empty_dataset", AttrType::kBool}},
          .min_inputs = 2,
          .max_inputs = kMaxNodes,
          .undivided = 1,
          .hands_on = true,
          .infer = InferChoose,
          .build = BuildChoose};
}

Dataset Dataset::ChooseFromDatasets(std::vector<Dataset> datasets, const Dataset& choice_dataset,
                                    ChooseFromDatasetsOptions options) {
  std::vector<NodePtr> inputs;
  for (const Dataset& dataset : datasets) inputs.push_back(NodeOf(dataset));
  inputs.push_back(NodeOf(choice_dataset));
  return DatasetOf(MakeNode("ChooseFromDatasets",
                            {{"stop_on_empty_dataset", options.stop_on_empty_dataset}},
                            std::move(inputs)));
}

}  // namespace penstock
