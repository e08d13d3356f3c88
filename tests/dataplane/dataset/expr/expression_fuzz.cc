// SPDX-License-Identifier: Apache-2.0
// Random functions: any operation on any value, with attributes of the right types and odd values.
// A function that inference accepts must bind and run, or fail with a status, and its results must
// be as inferred.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/dataset/expr/op_registry.h"
#include "include/status_macros.h"
#include "penstock/check.h"
#include "penstock/register.h"
#include "tests/dataplane/dataset/expr/run_function.h"
#include "tests/dataplane/dataset/expr/small_values.h"

namespace penstock {
namespace {

absl::Status Copy(CallContext& call) {
  if (call.inputs().empty()) return absl::InvalidArgumentError("nothing to copy");
  ASSIGN_OR_RETURN(const auto out, call.OutputAs<int64_t>(0, {}));
  out[0] = call.inputs()[0].element_count();
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("copy", 1, Scalar(kInt64), Copy);

// Draws choices from the fuzzer's bytes; zeros when they have run out.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool AtEnd() const { return at_ >= size_; }
  uint8_t Byte() { return at_ < size_ ? data_[at_++] : 0; }
  size_t Below(size_t limit) { return limit == 0 ? 0 : Byte() % limit; }
  int64_t Int() {
    static constexpr int64_t kOdd[] = {-1, INT64_MIN, INT64_MAX, 1 << 20, -2, 100};
    const uint8_t byte = Byte();
    return byte < 250 ? byte % 7 : kOdd[byte - 250];
  }
  double Double() {
    static constexpr double kValues[] = {0.5, 1, 0, -1, 1e-9, 1e300, 0.25, 2};
    return Byte() == 255 ? std::numeric_limits<double>::quiet_NaN() : kValues[Below(8)];
  }
  DType AnyDType() { return static_cast<DType>(Byte() % 18); }
  DType Known() { return static_cast<DType>(1 + Byte() % 16); }
  std::string Text(size_t most) {
    std::string text(Below(most + 1), '\0');
    for (char& c : text) c = static_cast<char>(Byte());
    return text;
  }
  std::string Rest() {
    std::string text(reinterpret_cast<const char*>(data_) + at_, AtEnd() ? 0 : size_ - at_);
    at_ = size_;
    return text;
  }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
};

template <class T, class F>
std::vector<T> Some(Choices& choices, size_t most, F&& make) {
  std::vector<T> values(choices.Below(most + 1));
  for (T& value : values) value = make();
  return values;
}

Attr RandomAttr(Choices& choices, size_t type) {
  switch (type) {
    case kAttrIndex<int64_t>:
      return choices.Int();
    case kAttrIndex<double>:
      return choices.Double();
    case kAttrIndex<bool>:
      return choices.Byte() % 2 == 1;
    case kAttrIndex<std::string>:
      return choices.Byte() % 2 == 0 ? "copy" : choices.Text(24);
    case kAttrIndex<DType>:
      return choices.AnyDType();
    case kAttrIndex<std::vector<int64_t>>:
      return Some<int64_t>(choices, 4, [&] { return choices.Int(); });
    case kAttrIndex<std::vector<double>>:
      return Some<double>(choices, 4, [&] { return choices.Double(); });
    case kAttrIndex<std::vector<std::string>>:
      return Some<std::string>(choices, 3, [&] { return choices.Text(5); });
    default: {
      const TensorSpec leaf = Dense(choices.Known(), Shape({choices.Int() % 4}));
      if (choices.Byte() % 4 == 0) return Spec(Scalar(kInt64));
      return Spec::Dict({{choices.Text(2), leaf}, {"i", Scalar(kInt64)}});
    }
  }
}

// Returns the value, or now and then the same values in rows of one or two levels.
Owned MaybeRagged(Choices& choices, Owned value) {
  if (value.dims.empty() || choices.Byte() % 4 != 0) return value;
  for (size_t levels = 1 + choices.Below(2); levels > 0; --levels) {
    // The rows of a level are the values of the one above.
    const int64_t count =
        value.splits.empty() ? value.dims[0] : static_cast<int64_t>(value.splits[0].size()) - 1;
    std::vector<int64_t> splits = {0};
    while (splits.back() < count)
      splits.push_back(std::min<int64_t>(count, splits.back() + choices.Byte() % 3 + 1));
    if (choices.Byte() % 2 == 0) splits.push_back(count);  // an empty row
    value.splits.insert(value.splits.begin(), std::move(splits));
  }
  return value;
}

Owned RandomTensor(Choices& choices, bool last) {
  const DType dtype = last ? kString : choices.Known();
  if (last) return String(choices.Rest());
  std::vector<int64_t> dims = Some<int64_t>(choices, 3, [&] { return choices.Byte() % 5; });
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  if (dtype == kString) {
    std::vector<std::string> values(count);
    for (std::string& value : values) value = choices.Text(4);
    return MaybeRagged(choices, Strings(dims, values));
  }
  std::vector<uint8_t> bytes(count * SizeOf(dtype));
  for (uint8_t& byte : bytes) byte = choices.Byte();
  Owned owned = Values<uint8_t>(dims, bytes);
  owned.dtype = dtype;
  return MaybeRagged(choices, std::move(owned));
}

TensorSpec LooseSpec(Choices& choices, const Owned& value) {
  if (!value.splits.empty()) return value.spec();
  if (choices.Byte() % 8 == 0) return Dense(value.dtype, Shape::UnknownRank());
  std::vector<int64_t> dims = value.dims;
  for (int64_t& dim : dims)
    if (choices.Byte() % 4 == 0) dim = kUnknownDim;
  return Dense(value.dtype, Shape(dims));
}

void RunOnce(Choices& choices) {
  std::vector<Owned> inputs;
  std::vector<Spec> specs;
  const size_t count = 1 + choices.Below(3);
  std::vector<TensorSpec> values;
  FunctionDef def;
  for (size_t i = 0; i < count; ++i) {
    inputs.push_back(RandomTensor(choices, /*last=*/false));
    values.push_back(LooseSpec(choices, inputs.back()));
  }
  // The last value is a string of bytes for decoders; it is filled at the end.
  values.push_back(Bytes());
  for (const TensorSpec& spec : values) specs.emplace_back(spec);
  def.input = Spec::Tuple(specs);

  const std::vector<const OpRow*> rows = AllOps();
  for (int n = 0; n < 12 && !choices.AtEnd(); ++n) {
    const OpRow& row = *rows[choices.Below(rows.size())];
    OpDef op{.op = std::string(row.name), .attrs = {}, .inputs = {}, .outputs = {}};
    for (const AttrRow& attr : row.attrs)
      op.attrs[std::string(attr.name)] = RandomAttr(choices, attr.type);
    std::vector<TensorSpec> arguments;
    const int most = std::min(row.max_inputs, 3);
    const int least = std::min(row.min_inputs, most);
    const int arguments_wanted = least + static_cast<int>(choices.Below(most - least + 1));
    for (int i = 0; i < arguments_wanted; ++i) {
      // Often chooses the newest value, so that graphs grow deep.
      const size_t value = choices.Byte() % 2 ? values.size() - 1 : choices.Below(values.size());
      op.inputs.push_back(static_cast<uint32_t>(value));
      arguments.push_back(values[value]);
    }
    auto outputs = InferOp(row, op.attrs, arguments);
    if (!outputs.ok()) continue;
    op.outputs = *std::move(outputs);
    if (row.name == "Call" || row.name == "PythonCall")
      def.deterministic &= Get<bool>(op.attrs, "deterministic");
    values.insert(values.end(), op.outputs.begin(), op.outputs.end());
    def.ops.push_back(std::move(op));
  }
  std::vector<Spec> results;
  for (size_t i = 0; i < 3; ++i) {
    def.results.push_back(static_cast<uint32_t>(values.size() - 1 - choices.Below(values.size())));
    results.emplace_back(values[def.results[i]]);
  }
  def.output = Spec::Tuple(results);
  PENSTOCK_CHECK(CheckFunction(def).ok());
  inputs.push_back(RandomTensor(choices, /*last=*/true));
  const auto bound = BoundFunction::Bind(std::make_shared<const FunctionDef>(def));
  if (!bound.ok()) {
    PENSTOCK_CHECK(bound.status().code() == absl::StatusCode::kNotFound ||
                   bound.status().code() == absl::StatusCode::kPermissionDenied);
    return;
  }
  const auto made = RunBound(**bound, inputs, {.seed = 1});
  if (!made.ok()) return;
  for (size_t i = 0; i < made->size(); ++i) {
    PENSTOCK_CHECK((*made)[i].dtype == def.output.leaves()[i].dtype);
    const TensorSpec& spec = def.output.leaves()[i];
    PENSTOCK_CHECK(static_cast<int>((*made)[i].splits.size()) == spec.ragged_rank);
    if (spec.kind == TensorSpec::Kind::kDense) PENSTOCK_CHECK(spec.shape.Admits((*made)[i].dims));
  }
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  penstock::Choices choices(data, size);
  penstock::RunOnce(choices);
  return 0;
}
