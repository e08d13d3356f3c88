// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/integer_function.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/transforms/decides_by_value.h"
#include "dataplane/dataset/transforms/element_tensors.h"
#include "penstock/status.h"

namespace penstock {
namespace {

// Takes the one result.
class IntegerSink final : public ResultSink {
 public:
  absl::StatusOr<absl::Span<std::byte>> Place(size_t, DType dtype,
                                              absl::Span<const int64_t>) override {
    dtype_ = dtype;
    return absl::MakeSpan(bytes_, SizeOf(dtype));
  }
  absl::Status Copy(size_t, const Tensor& value) override {
    dtype_ = value.dtype();
    std::memcpy(bytes_, value.raw(), SizeOf(dtype_));
    return absl::OkStatus();
  }
  int64_t value() const {
    const Tensor scalar(dtype_, {}, bytes_);
    return dtype_ == kInt32 ? scalar.scalar<int32_t>() : scalar.scalar<int64_t>();
  }

 private:
  DType dtype_ = kInt64;
  alignas(8) std::byte bytes_[8] = {};
};

}  // namespace

absl::Status IntegerFunction::Check(const FunctionDef& function, const Dataset::Node& input,
                                    std::string_view argument) {
  const std::string name(argument);
  RETURN_IF_ERROR(Annotate(function.input.Admits(input.spec), name,
                           " takes other elements than the input gives"));
  if (function.output != Spec(Scalar(kInt32)) && function.output != Spec(Scalar(kInt64))) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " must give an int32 or int64 scalar, not ", function.output.ToString()));
  }
  RETURN_IF_ERROR(CheckDeterministic(function, argument));
  return CheckDeterministic(input);
}

absl::StatusOr<IntegerFunction> IntegerFunction::Create(const BuildSite& site,
                                                        const std::string& argument) {
  ASSIGN_OR_RETURN(std::shared_ptr<const BoundFunction> function,
                   site.Bind(site.attr<std::shared_ptr<const FunctionDef>>(argument)));
  return IntegerFunction(site, std::move(function));
}

absl::StatusOr<int64_t> IntegerFunction::Run(const Element& element, int64_t number) const {
  IntegerSink result;
  RandomKey random = random_;
  random.element = static_cast<uint64_t>(number);
  const ElementTensors tensors(element);
  RETURN_IF_ERROR(
      Annotate(function_->Run(tensors, random, result), "in ", site_.name(), ", element ", number));
  return result.value();
}

}  // namespace penstock
