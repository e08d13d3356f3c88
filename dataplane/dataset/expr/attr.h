// SPDX-License-Identifier: Apache-2.0
// Named parameters of dataset nodes and operations, as plain values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "penstock/dtype.h"
#include "penstock/element.h"
#include "penstock/spec.h"

namespace penstock {

struct FunctionDef;

// Elements inside a definition (FromTensors). Shared and read-only.
using ConstantElement = std::shared_ptr<const Element>;

using Attr = std::variant<int64_t, double, bool, std::string, DType, std::vector<int64_t>,
                          std::vector<double>, std::vector<std::string>, Spec,
                          std::shared_ptr<const FunctionDef>, ConstantElement>;
using Attrs = std::map<std::string, Attr>;

// Returns the attribute `name` of type T. REQUIRES: it exists and has that type; untrusted
// definitions are checked against the registry when they are parsed.
template <class T>
const T& Get(const Attrs& attrs, std::string_view name) {
  return std::get<T>(attrs.at(std::string(name)));
}

}  // namespace penstock
