// SPDX-License-Identifier: Apache-2.0
// Dataset::SampleFromDatasets: a counter-based generator draws the dataset of the next element, so
// a position is the number of draws and the inputs' positions. Only datasets that have not ended
// are drawn. Each has the same probability as in repeated draws from all datasets until one that
// has not ended is drawn.
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/combine/chosen_inputs.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

class ChoiceByWeight final : public Choice {
 public:
  ChoiceByWeight(RandomKey random, std::vector<double> weights)
      : random_(random), weights_(std::move(weights)) {}

  absl::StatusOr<std::optional<size_t>> Next(const std::vector<bool>& goes_on) override {
    double total = 0;
    for (size_t i = 0; i < weights_.size(); ++i) total += goes_on[i] ? weights_[i] : 0;
    if (total == 0) return std::nullopt;  // the other datasets are never drawn
    double point = RandomUnit(random_, 0) * total;
    ++random_.element;
    std::optional<size_t> drawn;
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (!goes_on[i] || weights_[i] == 0) continue;
      if (drawn.has_value() && point < 0) break;
      drawn = i;
      point -= weights_[i];
    }
    return drawn;
  }

  absl::Status Save(StateWriter& writer) override {
    writer.WriteUnsigned(random_.element);
    return absl::OkStatus();
  }
  absl::Status Restore(StateReader& reader) override {
    ASSIGN_OR_RETURN(random_.element, reader.ReadUnsigned());
    return absl::OkStatus();
  }

 private:
  RandomKey random_;  // of the next draw
  const std::vector<double> weights_;
};

absl::Status CheckWeights(const std::vector<double>& weights, size_t datasets) {
  if (weights.empty()) return absl::OkStatus();
  if (weights.size() != datasets) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights has ", weights.size(), " values for ", datasets, " datasets"));
  }
  double total = 0;
  for (double weight : weights) {
    if (!(weight >= 0) || !std::isfinite(total += weight)) {
      return absl::InvalidArgumentError(
          absl::StrCat("weights must be 0 or more and have a finite sum, not ", weight));
    }
  }
  if (total > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("weights are all 0: no dataset would ever be drawn");
}

std::vector<double> WeightsOf(const Attrs& attrs, size_t datasets) {
  const auto& given = Get<std::vector<double>>(attrs, "weights");
  return given.empty() ? std::vector<double>(datasets, 1.0) : given;
}

// Returns the number of elements of all inputs that may be drawn, if each is read to its end.
Cardinality CardinalitySum(absl::Span<const NodePtr> inputs, const std::vector<double>& weights) {
  Cardinality sum = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Cardinality of = inputs[i]->cardinality;
    if (weights[i] == 0 || sum == kInfinite) continue;
    if (of == kInfinite) {
      sum = kInfinite;
    } else if (of == kUnknown || sum == kUnknown || __builtin_add_overflow(sum, of, &sum)) {
      sum = kUnknown;
    }
  }
  return sum;
}

absl::StatusOr<Inferred> InferSample(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  RETURN_IF_ERROR(CheckWeights(Get<std::vector<double>>(attrs, "weights"), inputs.size()));
  ASSIGN_OR_RETURN(Spec spec, SpecOfAny(inputs));
  const std::vector<double> weights = WeightsOf(attrs, inputs.size());
  if (!Get<bool>(attrs, "stop_on_empty_dataset"))
    return Inferred{std::move(spec), CardinalitySum(inputs, weights)};
  bool endless = true;
  for (size_t i = 0; i < inputs.size(); ++i)
    endless = endless && (weights[i] == 0 || inputs[i]->cardinality == kInfinite);
  return Inferred{std::move(spec), endless ? kInfinite : kUnknown};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildSample(const BuildSite& site) {
  const size_t count = site.node().inputs.size();
  return ReadChosen(
      site, count,
      std::make_unique<ChoiceByWeight>(site.Random(site.attr<bool>("rerandomize_each_iteration")),
                                       WeightsOf(site.node().attrs, count)),
      site.attr<bool>("stop_on_empty_dataset"));
}

}  // namespace

NodeKind SampleFromDatasetsKind() {
  return {.op = "SampleFromDatasets",
          .attrs = {{"weights", AttrType::kDoubles},
                    {"seed", AttrType::kInt, false},
                    {"stop_on_empty_dataset", AttrType::kBool},
                    {"rerandomize_each_iteration", AttrType::kBool}},
          .max_inputs = kMaxNodes,
          .hands_on = true,
          .infer = InferSample,
          .build = BuildSample};
}

Dataset Dataset::SampleFromDatasets(std::vector<Dataset> datasets,
                                    SampleFromDatasetsOptions options) {
  std::vector<NodePtr> inputs;
  for (const Dataset& dataset : datasets) inputs.push_back(NodeOf(dataset));
  Attrs attrs = {{"weights", std::move(options.weights)},
                 {"stop_on_empty_dataset", options.stop_on_empty_dataset},
                 {"rerandomize_each_iteration", options.rerandomize_each_iteration}};
  if (options.seed.has_value()) attrs["seed"] = static_cast<int64_t>(*options.seed);
  return DatasetOf(MakeNode("SampleFromDatasets", std::move(attrs), std::move(inputs)));
}

}  // namespace penstock
