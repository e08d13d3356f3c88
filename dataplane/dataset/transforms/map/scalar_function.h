// SPDX-License-Identifier: Apache-2.0
// A function that returns a scalar for an element. The value decides which group the element
// belongs to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/graph/graph.h"
#include "penstock/element.h"

namespace penstock {

class ScalarFunction {
 protected:
  // Checks the function at inference. InvalidArgument names `argument` in these cases: the function
  // does not take elements of `input`; it does not return a scalar of one of `dtypes`; the function
  // or any part of `input` is not deterministic.
  static absl::Status Check(const FunctionDef& function, const Dataset::Node& input,
                            std::string_view argument, absl::Span<const DType> dtypes);

  // Makes the function in the attribute `argument` of the site's node.
  static absl::StatusOr<ScalarFunction> Create(const BuildSite& site, const std::string& argument);

  // Runs on element `number` of the input. `read` converts the scalar.
  template <class Read>
  auto RunOn(const Element& element, int64_t number, Read read) const
      -> absl::StatusOr<std::invoke_result_t<Read, const Tensor&>> {
    alignas(8) std::byte bytes[8] = {};
    absl::StatusOr<DType> dtype = RunInto(absl::MakeSpan(bytes), element, number);
    if (!dtype.ok()) return dtype.status();
    return read(Tensor(*dtype, {}, bytes));
  }

 private:
  ScalarFunction(const BuildSite& site, std::shared_ptr<const BoundFunction> function)
      : site_(site), function_(std::move(function)), random_(site.Random()) {}
  absl::StatusOr<DType> RunInto(absl::Span<std::byte> bytes, const Element& element,
                                int64_t number) const;

  BuildSite site_;
  std::shared_ptr<const BoundFunction> function_;
  RandomKey random_;
};

// A function that returns an int32 or int64.
class IntegerFunction : private ScalarFunction {
 public:
  static absl::Status Check(const FunctionDef& function, const Dataset::Node& input,
                            std::string_view argument);
  static absl::StatusOr<IntegerFunction> Create(const BuildSite& site, const std::string& argument);
  absl::StatusOr<int64_t> Run(const Element& element, int64_t number) const;

 private:
  explicit IntegerFunction(ScalarFunction function) : ScalarFunction(std::move(function)) {}
};

// A function that returns a number that a double represents: int32, int64, float32 or float64.
class NumberFunction : private ScalarFunction {
 public:
  static absl::Status Check(const FunctionDef& function, const Dataset::Node& input,
                            std::string_view argument);
  static absl::StatusOr<NumberFunction> Create(const BuildSite& site, const std::string& argument);
  absl::StatusOr<double> Run(const Element& element, int64_t number) const;

 private:
  explicit NumberFunction(ScalarFunction function) : ScalarFunction(std::move(function)) {}
};

}  // namespace penstock
