// SPDX-License-Identifier: Apache-2.0
// Dataset::GroupByWindow: windows of elements with the same key.
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/map/scalar_function.h"
#include "dataplane/dataset/transforms/window/keyed_windows.h"
#include "dataplane/dataset/transforms/window/window_form.h"
#include "dataplane/dataset/transforms/window/windowed_dataset.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

class GroupByWindowIterator final : public KeyedWindows {
 public:
  GroupByWindowIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input,
                        IntegerFunction key)
      : KeyedWindows(site, std::move(input)),
        key_(std::move(key)),
        size_(site.attr<int64_t>("window_size")),
        form_(site) {}

 private:
  absl::StatusOr<int64_t> KeyOf(const Element& element, int64_t number) override {
    return key_.Run(element, number);
  }
  int64_t SizeOf(int64_t) const override { return size_; }
  absl::StatusOr<Element> Put(int64_t, absl::Span<const Element> elements) override {
    return form_.Put(elements);
  }

  const IntegerFunction key_;
  const int64_t size_;
  const WindowForm form_;
};

absl::StatusOr<Inferred> InferGroupByWindow(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const int64_t size = Get<int64_t>(attrs, "window_size");
  if (size < 1)
    return absl::InvalidArgumentError(absl::StrCat("window_size must be at least 1, not ", size));
  RETURN_IF_ERROR(CheckWindowAttrs(attrs));
  RETURN_IF_ERROR(IntegerFunction::Check(*Get<std::shared_ptr<const FunctionDef>>(attrs, "key"),
                                         *inputs[0], "key"));
  const int64_t rows = Get<bool>(attrs, "drop_remainder") ? size : kUnknownDim;
  ASSIGN_OR_RETURN(Spec window, WindowForm::Infer(attrs, inputs[0]->spec, rows));
  return Inferred{std::move(window), inputs[0]->cardinality == 0 ? 0 : kUnknown};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildGroupByWindow(const BuildSite& site) {
  ASSIGN_OR_RETURN(IntegerFunction key, IntegerFunction::Create(site, "key"));
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<GroupByWindowIterator>(site, std::move(input), std::move(key));
}

}  // namespace

NodeKind GroupByWindowKind() {
  NodeKind kind = {.op = "GroupByWindow",
                   .attrs = {{"key", AttrType::kFunction}, {"window_size", AttrType::kInt}},
                   .infer = InferGroupByWindow,
                   .build = BuildGroupByWindow,
                   .explain_details = RestoresFrom};
  for (const AttrRule& rule : WindowRules()) kind.attrs.push_back(rule);
  for (const AttrRule& rule : WindowForm::Rules()) kind.attrs.push_back(rule);
  return kind;
}

WindowedDataset Dataset::GroupByWindow(MapFunction key, int64_t window_size,
                                       GroupByWindowOptions options) const {
  WindowedDataset::Windows windows = {.op = "GroupByWindow", .input = node_};
  if (status().ok()) {
    absl::StatusOr<std::shared_ptr<const FunctionDef>> traced = Trace(key, element_spec());
    windows.mistake = traced.status();
    windows.attrs = WindowAttrs(options.drop_remainder, options.max_age);
    windows.attrs["window_size"] = window_size;
    if (traced.ok()) windows.attrs["key"] = *std::move(traced);
  }
  return WindowedDataset(std::make_shared<const WindowedDataset::Windows>(std::move(windows)));
}

}  // namespace penstock
