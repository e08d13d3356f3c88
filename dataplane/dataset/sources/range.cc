// SPDX-License-Identifier: Apache-2.0
// Dataset::Range: equally spaced int64 scalars. RangeOf: 0 … argument - 1, inside a body.
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/sources/indexed_source.h"
#include "dataplane/dataset/sources/kinds.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// How many of the numbers start, start + step, … are before stop. nullopt if the count does not fit
// in int64. REQUIRES: step != 0.
std::optional<int64_t> RangeCount(int64_t start, int64_t stop, int64_t step) {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  const uint64_t distance = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                     : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  const uint64_t count = (distance - 1) / stride + 1;
  if (count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return static_cast<int64_t>(count);
}

class RangeIterator final : public IndexedSource {
 public:
  RangeIterator(const BuildSite& site, int64_t start, int64_t step, int64_t count)
      : IndexedSource(site, count, SplitCountFor(count)),
        start_(start),
        step_(step),
        layout_(BlockLayout::OfStatic(site.spec())) {}

 private:
  absl::StatusOr<Element> Make(int64_t n) override {
    ASSIGN_OR_RETURN(OpenBlock block, NewBlock(site().pool(), layout_, site().spec()));
    *block.writer.data_as<int64_t>(0) = NumberAt(n);
    return std::move(block).Seal(site().spec());
  }

  absl::Status MakeInto(int64_t n, ResultSink& sink) override {
    ASSIGN_OR_RETURN(const absl::Span<std::byte> memory, sink.Place(0, kInt64, {}));
    const int64_t value = NumberAt(n);
    std::memcpy(memory.data(), &value, sizeof(value));
    return absl::OkStatus();
  }

  // Computed modulo 2^64, because n × step may overflow int64 even if start + n × step does not.
  int64_t NumberAt(int64_t n) const {
    return static_cast<int64_t>(static_cast<uint64_t>(start_) +
                                static_cast<uint64_t>(n) * static_cast<uint64_t>(step_));
  }

  int64_t start_;
  int64_t step_;
  BlockLayout layout_;
};

absl::StatusOr<Inferred> InferRangeDataset(const Attrs& attrs, absl::Span<const NodePtr>) {
  const int64_t step = Get<int64_t>(attrs, "step");
  if (step == 0) return absl::InvalidArgumentError("step must not be 0");
  const std::optional<int64_t> count =
      RangeCount(Get<int64_t>(attrs, "start"), Get<int64_t>(attrs, "stop"), step);
  if (!count.has_value())
    return absl::InvalidArgumentError("start and stop are more than 2^63 - 1 steps apart");
  return Inferred{Scalar(kInt64), *count};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildRange(const BuildSite& site) {
  return std::make_unique<RangeIterator>(site, site.attr<int64_t>("start"),
                                         site.attr<int64_t>("step"), site.node().cardinality);
}

absl::StatusOr<SplitProviderPlan> PlanRange(const Dataset::Node& node, Files&) {
  return SplitProviderPlan{.count = SplitCountFor(node.cardinality)};
}

absl::StatusOr<Inferred> InferRangeOf(const Attrs& attrs, absl::Span<const NodePtr>) {
  const Spec& argument = Get<Spec>(attrs, "argument");
  if (argument != Spec(Scalar(kInt64))) {
    return absl::InvalidArgumentError(absl::StrCat("stop must be an int64 scalar, not ",
                                                   argument.ToString(),
                                                   "; Cast(x, kInt64) converts other integers"));
  }
  return Inferred{Scalar(kInt64), kUnknown};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildRangeOf(const BuildSite& site) {
  const int64_t stop = site.argument()[0].scalar<int64_t>();
  return std::make_unique<RangeIterator>(site, 0, 1, std::max<int64_t>(stop, 0));
}

}  // namespace

NodeKind RangeKind() {
  return {.op = "Range",
          .attrs = {{"start", AttrType::kInt}, {"stop", AttrType::kInt}, {"step", AttrType::kInt}},
          .min_inputs = 0,
          .max_inputs = 0,
          .infer = InferRangeDataset,
          .build = BuildRange,
          .plan = PlanRange};
}

NodeKind RangeOfKind() {
  return {.op = "RangeOf",
          .attrs = {{"argument", AttrType::kSpec}},
          .min_inputs = 0,
          .max_inputs = 0,
          .takes_argument = true,
          .infer = InferRangeOf,
          .build = BuildRangeOf};
}

Dataset Dataset::Range(int64_t stop) {
  return Range(0, stop, 1);
}

Dataset Dataset::Range(int64_t start, int64_t stop, int64_t step) {
  return DatasetOf(MakeNode("Range", {{"start", start}, {"stop", stop}, {"step", step}}, {}));
}

Dataset Dataset::Range(const Expr& stop) {
  return DatasetOf(MakeNode("RangeOf", {{"argument", stop.spec()}}, {}, {stop}));
}

}  // namespace penstock
