// SPDX-License-Identifier: Apache-2.0
// Dataset::Window: windows of consecutive elements, which may overlap or leave out elements. A
// position is the number of the next window's first element.
#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/batch/row_errors.h"
#include "dataplane/dataset/transforms/buffer_charge.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "dataplane/dataset/transforms/window/window_form.h"
#include "dataplane/dataset/transforms/window/windowed_dataset.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 48;

// Returns the number of elements from the first to the last of a window, both included.
int64_t Reach(const Attrs& attrs) {
  return (Get<int64_t>(attrs, "size") - 1) * Get<int64_t>(attrs, "stride") + 1;
}

class WindowIterator final : public NodeIterator {
 public:
  WindowIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input)
      : site_(site),
        reach_(Reach(site.node().attrs)),
        shift_(site.attr<int64_t>("shift")),
        stride_(site.attr<int64_t>("stride")),
        drop_remainder_(site.attr<bool>("drop_remainder")),
        form_(site),
        input_(std::move(input), std::max(reach_, kRemember)) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    ASSIGN_OR_RETURN(const bool more, Fill());
    if (!more) return std::nullopt;
    absl::StatusOr<Element> window = Put();
    Shift();
    if (!window.ok()) return Annotate(window.status(), "in ", site_.name());
    return *std::move(window);
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    for (int64_t passed = 0; passed < count; ++passed) {
      ASSIGN_OR_RETURN(const bool more, Fill());
      if (!more) return passed;
      Shift();
    }
    return count;
  }

  absl::Status Save(StateWriter& writer) override {
    const int64_t from = std::min(first_, input_.pulled());
    RETURN_IF_ERROR(input_.Save(writer, from));
    writer.WriteInt(first_ - from);
    return absl::OkStatus();
  }

  absl::Status Restore(StateReader& reader) override {
    RETURN_IF_ERROR(input_.Restore(reader));
    ASSIGN_OR_RETURN(const int64_t away,
                     reader.ReadIntIn(0, kMostElements, "the distance to the next window"));
    first_ = input_.pulled() + away;
    return absl::OkStatus();
  }

 private:
  struct Held {
    absl::StatusOr<Element> element;  // or the error in its place
    BufferCharge charge;
  };

  // Reads the elements of the next window; false at the end.
  absl::StatusOr<bool> Fill() {
    if (first_ > input_.pulled()) {  // elements between two windows
      ASSIGN_OR_RETURN(const int64_t passed, input_.Skip(first_ - input_.pulled()));
      static_cast<void>(passed);  // if fewer, there is no next window
      if (input_.pulled() < first_) return false;
    }
    while (static_cast<int64_t>(held_.size()) < reach_) {
      RETURN_IF_ERROR(site_.CheckCancelled());
      absl::StatusOr<std::optional<Element>> next = input_.Next();
      if (!next.ok()) {
        if (EndsReading(next.status())) return next.status();
        RETURN_IF_ERROR(Hold(next.status()));
      } else if (next->has_value()) {
        RETURN_IF_ERROR(Hold(**std::move(next)));
      } else {
        return !held_.empty() && !drop_remainder_;
      }
    }
    return true;
  }

  absl::Status Hold(absl::StatusOr<Element> element) {
    BufferCharge charge;
    RETURN_IF_ERROR(element.ok() ? charge.Add(site_, *element)
                                 : charge.Add(site_, element.status()));
    held_.push_back({std::move(element), std::move(charge)});
    return absl::OkStatus();
  }

  absl::StatusOr<Element> Put() const {
    RowErrors errors;
    std::vector<Element> elements;
    for (size_t i = 0; i < held_.size(); i += static_cast<size_t>(stride_)) {
      if (held_[i].element.ok())
        elements.push_back(held_[i].element->Share());
      else
        errors.Add(static_cast<int64_t>(i), held_[i].element.status());
    }
    RETURN_IF_ERROR(errors.ForBatch());
    return form_.Put(elements);
  }

  void Shift() {
    first_ += shift_;
    const int64_t gone = std::min(shift_, static_cast<int64_t>(held_.size()));
    held_.erase(held_.begin(), held_.begin() + gone);
    input_.Release(std::min(first_, input_.pulled()));
  }

  const BuildSite site_;
  const int64_t reach_;
  const int64_t shift_;
  const int64_t stride_;
  const bool drop_remainder_;
  const WindowForm form_;
  PositionedInput input_;
  int64_t first_ = 0;      // number of the next window's first element
  std::deque<Held> held_;  // from first_ on, as far as read
};

absl::StatusOr<Inferred> InferWindow(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  for (const char* name : {"size", "shift", "stride"}) {
    const int64_t value = Get<int64_t>(attrs, name);
    if (value >= 1 && value <= kMostElements) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " must be in [1, ", kMostElements, "], not ", value));
  }
  const int64_t size = Get<int64_t>(attrs, "size");
  const int64_t shift = Get<int64_t>(attrs, "shift");
  const bool drop_remainder = Get<bool>(attrs, "drop_remainder");
  if (size - 1 > kMostElements / Get<int64_t>(attrs, "stride")) {
    return absl::InvalidArgumentError(
        absl::StrCat("size and stride must not span more than ", kMostElements, " elements"));
  }
  ASSIGN_OR_RETURN(Spec window,
                   WindowForm::Infer(attrs, inputs[0]->spec, drop_remainder ? size : kUnknownDim));
  Cardinality cardinality = inputs[0]->cardinality;
  if (cardinality > 0) {
    const int64_t starts = drop_remainder ? cardinality - Reach(attrs) + 1 : cardinality;
    cardinality = starts <= 0 ? 0 : (starts - 1) / shift + 1;
  }
  return Inferred{std::move(window), cardinality};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildWindow(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<WindowIterator>(site, std::move(input));
}

std::string ReachText(const Dataset::Node& node) {
  return absl::StrCat("restores from the next window's first element, at most ",
                      std::max(Reach(node.attrs), kRemember) - 1, " inputs further back");
}

}  // namespace

NodeKind WindowKind() {
  NodeKind kind = {.op = "Window",
                   .attrs = {{"size", AttrType::kInt},
                             {"shift", AttrType::kInt},
                             {"stride", AttrType::kInt},
                             {"drop_remainder", AttrType::kBool}},
                   .infer = InferWindow,
                   .build = BuildWindow,
                   .explain_details = ReachText};
  for (const AttrRule& rule : WindowForm::Rules()) kind.attrs.push_back(rule);
  return kind;
}

WindowedDataset Dataset::Window(int64_t size, WindowOptions options) const {
  return WindowedDataset(std::make_shared<const WindowedDataset::Windows>(
      WindowedDataset::Windows{.op = "Window",
                               .attrs = {{"size", size},
                                         {"shift", options.shift.value_or(size)},
                                         {"stride", options.stride},
                                         {"drop_remainder", options.drop_remainder}},
                               .input = node_}));
}

}  // namespace penstock
