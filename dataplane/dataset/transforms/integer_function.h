// SPDX-License-Identifier: Apache-2.0
// A function that decides by value where an element goes: an int32 or int64
// scalar of each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "dataplane/dataset/build_site.h"
#include "dataplane/dataset/function.h"
#include "dataplane/dataset/graph.h"
#include "penstock/element.h"

namespace penstock {

class IntegerFunction {
 public:
  // For inference: InvalidArgument naming `argument` unless the function takes
  // elements of `input`, gives such a scalar, and is deterministic as all of
  // `input` is.
  static absl::Status Check(const FunctionDef& function, const Dataset::Node& input,
                            std::string_view argument);

  // The function in the attribute `argument` of the site's node.
  static absl::StatusOr<IntegerFunction> Create(const BuildSite& site, const std::string& argument);

  // Of element number `number` of the input.
  absl::StatusOr<int64_t> Run(const Element& element, int64_t number) const;

 private:
  IntegerFunction(const BuildSite& site, std::shared_ptr<const BoundFunction> function)
      : site_(site), function_(std::move(function)), random_(site.Random()) {}

  BuildSite site_;
  std::shared_ptr<const BoundFunction> function_;
  RandomKey random_;
};

}  // namespace penstock
