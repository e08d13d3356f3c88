// SPDX-License-Identifier: Apache-2.0
// Dataset::IgnoreErrors: the elements without the errors between them. When a partition is
// replayed, the same errors must be skipped, or later elements would get different indices.
// Temporary errors are therefore not ignored, and functions must be deterministic.
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/observe/event_log.h"
#include "control/observe/metrics.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/error_origin.h"
#include "dataplane/dataset/graph/decides_by_value.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

int64_t MaxOf(const Attrs& attrs) {
  return attrs.contains("max") ? Get<int64_t>(attrs, "max") : std::numeric_limits<int64_t>::max();
}

class IgnoreErrorsIterator final : public NodeIterator {
 public:
  IgnoreErrorsIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input)
      : site_(site),
        input_(std::move(input)),
        max_(MaxOf(site.node().attrs)),
        log_warning_(site.attr<bool>("log_warning")),
        counter_(ProcessMetrics().GetCounter("penstock_errors_ignored_total",
                                             "Errors that IgnoreErrors passed over",
                                             {{"node", site.name()}})) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    while (true) {
      RETURN_IF_ERROR(site_.CheckCancelled());
      absl::StatusOr<std::optional<Element>> next = input_->Next();
      if (next.ok() || ignored_ == max_ || !LiesInTheData(next.status())) return next;
      ++ignored_;
      counter_.Add();
      if (!log_warning_) continue;
      StderrEventLog()->Write({"ignored_error",
                               {{"node", site_.name()},
                                {"count", absl::StrCat(ignored_)},
                                {"error", next.status().ToString()}}});
    }
  }

  absl::Status Save(StateWriter& writer) override {
    writer.WriteInt(ignored_);
    return input_->Save(writer);
  }

  absl::Status Restore(StateReader& reader) override {
    ASSIGN_OR_RETURN(ignored_, reader.ReadIntIn(0, max_, "the number of ignored errors"));
    return input_->Restore(reader);
  }

 private:
  BuildSite site_;
  std::unique_ptr<NodeIterator> input_;
  const int64_t max_;
  const bool log_warning_;
  Counter& counter_;
  int64_t ignored_ = 0;
};

absl::StatusOr<Inferred> InferIgnoreErrors(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  if (MaxOf(attrs) < 0) {
    return absl::InvalidArgumentError(absl::StrCat("max must be 0 or more, not ", MaxOf(attrs)));
  }
  RETURN_IF_ERROR(CheckDeterministic(*inputs[0]));
  const Cardinality of = inputs[0]->cardinality;
  return Inferred{inputs[0]->spec, of == 0 ? 0 : kUnknown};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildIgnoreErrors(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<IgnoreErrorsIterator>(site, std::move(input));
}

}  // namespace

NodeKind IgnoreErrorsKind() {
  return {.op = "IgnoreErrors",
          .attrs = {{"max", AttrType::kInt, false}, {"log_warning", AttrType::kBool, true, false}},
          .hands_on = true,
          .infer = InferIgnoreErrors,
          .build = BuildIgnoreErrors};
}

Dataset Dataset::IgnoreErrors(IgnoreErrorsOptions options) const {
  Attrs attrs = {{"log_warning", options.log_warning}};
  if (options.max.has_value()) attrs["max"] = *options.max;
  return DatasetOf(MakeNode("IgnoreErrors", std::move(attrs), {node_}));
}

}  // namespace penstock
