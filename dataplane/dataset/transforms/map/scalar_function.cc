// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/map/scalar_function.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dataplane/dataset/engine/element_views.h"
#include "dataplane/dataset/graph/decides_by_value.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr DType kIntegers[] = {kInt32, kInt64};
constexpr DType kNumbers[] = {kInt32, kInt64, kFloat32, kFloat64};

// Receives the one result.
class ScalarSink final : public ResultSink {
 public:
  explicit ScalarSink(absl::Span<std::byte> bytes) : bytes_(bytes) {}
  absl::StatusOr<absl::Span<std::byte>> Place(size_t, DType dtype,
                                              absl::Span<const int64_t>) override {
    dtype_ = dtype;
    return bytes_.first(SizeOf(dtype));
  }
  absl::Status Copy(size_t, const Tensor& value) override {
    dtype_ = value.dtype();
    std::memcpy(bytes_.data(), value.raw(), SizeOf(dtype_));
    return absl::OkStatus();
  }
  DType dtype() const { return dtype_; }

 private:
  const absl::Span<std::byte> bytes_;
  DType dtype_ = kInt64;
};

}  // namespace

absl::Status ScalarFunction::Check(const FunctionDef& function, const Dataset::Node& input,
                                   std::string_view argument, absl::Span<const DType> dtypes) {
  const std::string name(argument);
  RETURN_IF_ERROR(
      Annotate(function.input.Admits(input.spec), name, " does not accept the input's elements"));
  const bool fits = std::any_of(dtypes.begin(), dtypes.end(), [&](DType dtype) {
    return function.output == Spec(Scalar(dtype));
  });
  if (!fits) {
    std::vector<std::string> names;
    for (const DType dtype : dtypes) names.emplace_back(Name(dtype));
    return absl::InvalidArgumentError(absl::StrCat(name, " must return an ",
                                                   absl::StrJoin(names, " or "), " scalar, not ",
                                                   function.output.ToString()));
  }
  RETURN_IF_ERROR(CheckDeterministic(function, argument));
  return CheckDeterministic(input);
}

absl::StatusOr<ScalarFunction> ScalarFunction::Create(const BuildSite& site,
                                                      const std::string& argument) {
  ASSIGN_OR_RETURN(std::shared_ptr<const BoundFunction> function,
                   site.Bind(site.attr<std::shared_ptr<const FunctionDef>>(argument)));
  return ScalarFunction(site, std::move(function));
}

absl::StatusOr<DType> ScalarFunction::RunInto(absl::Span<std::byte> bytes, const Element& element,
                                              int64_t number) const {
  ScalarSink result(bytes);
  RandomKey random = random_;
  random.element = static_cast<uint64_t>(number);
  const ElementTensors tensors(element);
  RETURN_IF_ERROR(
      Annotate(function_->Run(tensors, random, result), "in ", site_.name(), ", element ", number));
  return result.dtype();
}

absl::Status IntegerFunction::Check(const FunctionDef& function, const Dataset::Node& input,
                                    std::string_view argument) {
  return ScalarFunction::Check(function, input, argument, kIntegers);
}

absl::StatusOr<IntegerFunction> IntegerFunction::Create(const BuildSite& site,
                                                        const std::string& argument) {
  ASSIGN_OR_RETURN(ScalarFunction function, ScalarFunction::Create(site, argument));
  return IntegerFunction(std::move(function));
}

absl::StatusOr<int64_t> IntegerFunction::Run(const Element& element, int64_t number) const {
  return RunOn(element, number, [](const Tensor& value) -> int64_t {
    return value.dtype() == kInt32 ? value.scalar<int32_t>() : value.scalar<int64_t>();
  });
}

absl::Status NumberFunction::Check(const FunctionDef& function, const Dataset::Node& input,
                                   std::string_view argument) {
  return ScalarFunction::Check(function, input, argument, kNumbers);
}

absl::StatusOr<NumberFunction> NumberFunction::Create(const BuildSite& site,
                                                      const std::string& argument) {
  ASSIGN_OR_RETURN(ScalarFunction function, ScalarFunction::Create(site, argument));
  return NumberFunction(std::move(function));
}

absl::StatusOr<double> NumberFunction::Run(const Element& element, int64_t number) const {
  return RunOn(element, number, [](const Tensor& value) -> double {
    switch (value.dtype()) {
      case kInt32:
        return value.scalar<int32_t>();
      case kInt64:
        return static_cast<double>(value.scalar<int64_t>());
      case kFloat32:
        return value.scalar<float>();
      default:
        return value.scalar<double>();
    }
  });
}

}  // namespace penstock
