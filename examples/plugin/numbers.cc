// SPDX-License-Identifier: Apache-2.0
// A plug-in: the source `numbers`, the transform `every` and the map `spread`.
// docs/plugins.md walks through it.
#include "absl/strings/numbers.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "penstock/penstock.h"

namespace ps = penstock;

namespace numbers {
namespace {

constexpr int64_t kPerSplit = 256;  // numbers

absl::StatusOr<int64_t> NumberIn(std::string_view text) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &number) || number < 0)
    return absl::DataLossError("a saved position is not a number");
  return number;
}

// --- The source: 0 … count - 1, in splits ---------------------------------------

absl::StatusOr<ps::SourceInfo> DescribeNumbers(const ps::Params& params) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t count, ps::ParamOf<int64_t>(params, "count"));
  if (count < 0)
    return absl::InvalidArgumentError(absl::StrCat("count must be at least 0, not ", count));
  return ps::SourceInfo{.spec = ps::Scalar(ps::kInt64),
                        .cardinality = count,
                        .splits = std::max<int64_t>(1, (count + kPerSplit - 1) / kPerSplit)};
}

class NumbersReader final : public ps::SourceReader {
 public:
  explicit NumbersReader(int64_t count) : count_(count) {}

  absl::Status Open(int64_t split) override {
    next_ = split * kPerSplit;
    end_ = std::min(next_ + kPerSplit, count_);
    return absl::OkStatus();
  }

  absl::StatusOr<bool> Next(ps::ElementOutputs& out) override {
    if (next_ >= end_) return false;
    PENSTOCK_ASSIGN_OR_RETURN(const absl::Span<int64_t> number, out.OutputAs<int64_t>(0, {}));
    number[0] = next_++;
    return true;
  }

  absl::StatusOr<std::string> Save() override { return absl::StrCat(next_); }

  absl::Status Restore(std::string_view position) override {
    PENSTOCK_ASSIGN_OR_RETURN(const int64_t next, NumberIn(position));
    if (next < next_ || next > end_)
      return absl::DataLossError("a saved position is outside its split");
    next_ = next;
    return absl::OkStatus();
  }

 private:
  const int64_t count_;
  int64_t next_ = 0;
  int64_t end_ = 0;  // of the split
};

absl::StatusOr<std::unique_ptr<ps::SourceReader>> OpenNumbers(const ps::Params& params) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t count, ps::ParamOf<int64_t>(params, "count"));
  return std::make_unique<NumbersReader>(count);
}

// --- The transform: every step-th element, beginning with number `first` -----------

absl::StatusOr<ps::TransformInfo> DescribeEvery(const ps::Params& params, const ps::Spec& input,
                                                ps::Cardinality cardinality) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t step, ps::ParamOf<int64_t>(params, "step"));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t first, ps::ParamOf<int64_t>(params, "first"));
  if (step < 1 || first < 0 || first >= step)
    return absl::InvalidArgumentError("step must be at least 1, and first in [0, step)");
  if (input != ps::Spec(ps::Scalar(ps::kInt64)))
    return absl::InvalidArgumentError(absl::StrCat("takes int64 scalars, not ", input.ToString()));
  if (cardinality >= 0) cardinality = (cardinality - first + step - 1) / step;
  return ps::TransformInfo{.spec = input, .cardinality = cardinality};
}

class Every final : public ps::Transform {
 public:
  Every(int64_t step, int64_t first) : step_(step), to_pass_(first) {}

  absl::StatusOr<bool> Next(ps::TransformInput& input, ps::ElementOutputs& out) override {
    while (true) {
      PENSTOCK_ASSIGN_OR_RETURN(const ps::Element* const element, input.Next());
      if (element == nullptr) return false;
      if (to_pass_-- > 0) continue;
      to_pass_ = step_ - 1;
      PENSTOCK_ASSIGN_OR_RETURN(const absl::Span<int64_t> number, out.OutputAs<int64_t>(0, {}));
      number[0] = element->tensor(0).scalar<int64_t>();
      return true;
    }
  }

  absl::StatusOr<std::string> Save() override { return absl::StrCat(to_pass_); }
  absl::Status Restore(std::string_view state) override {
    PENSTOCK_ASSIGN_OR_RETURN(to_pass_, NumberIn(state));
    return absl::OkStatus();
  }

 private:
  const int64_t step_;
  int64_t to_pass_;  // elements to skip before the next one that is kept
};

absl::StatusOr<std::unique_ptr<ps::Transform>> OpenEvery(const ps::Params& params,
                                                         const ps::Spec&) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t step, ps::ParamOf<int64_t>(params, "step"));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t first, ps::ParamOf<int64_t>(params, "first"));
  return std::make_unique<Every>(step, first);
}

// --- The map: (number, count) to (number, count values made from it) -----------------

absl::StatusOr<ps::Spec> SpecOfSpread(const ps::Spec& input) {
  PENSTOCK_RETURN_IF_ERROR(
      ps::Spec::Tuple({ps::Scalar(ps::kInt64), ps::Scalar(ps::kInt64)}).Admits(input));
  return ps::Spec::Tuple({ps::Scalar(ps::kInt64), ps::Dense(ps::kInt64, {ps::kUnknownDim})});
}

absl::Status Spread(ps::CallContext& call) {
  const int64_t number = call.inputs()[0].scalar<int64_t>();
  const int64_t count = call.inputs()[1].scalar<int64_t>();
  if (count < 0)
    return absl::InvalidArgumentError(absl::StrCat("count must be at least 0, not ", count));
  PENSTOCK_ASSIGN_OR_RETURN(const absl::Span<int64_t> same, call.OutputAs<int64_t>(0, {}));
  same[0] = number;
  PENSTOCK_ASSIGN_OR_RETURN(const absl::Span<int64_t> values, call.OutputAs<int64_t>(1, {count}));
  for (int64_t i = 0; i < count; ++i) values[i] = number + (i == number ? 7 : 0);
  return absl::OkStatus();
}

// --- Registration ----------------------------------------------------------------------

absl::Status Register() {
  PENSTOCK_RETURN_IF_ERROR(
      ps::RegisterSource("numbers", {.describe = DescribeNumbers, .open = OpenNumbers}));
  PENSTOCK_RETURN_IF_ERROR(
      ps::RegisterTransform("every", {.describe = DescribeEvery, .open = OpenEvery}));
  return ps::RegisterMap("spread", {.output_spec = SpecOfSpread, .call = Spread});
}

}  // namespace
}  // namespace numbers

PENSTOCK_EXPORT_PLUGIN(numbers::Register);
