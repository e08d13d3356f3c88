// SPDX-License-Identifier: Apache-2.0
// A field of an options struct that another field replaces. Setting it works until the next
// release, and the compiler warns.
#pragma once

#include <concepts>
#include <optional>
#include <utility>

#include "penstock/export.h"

namespace PENSTOCK_EXPORT penstock {

template <class T>
class MovedField {
 public:
  MovedField() = default;
  // clang-format off
  template <class U>
    requires std::convertible_to<U, T>
  [[deprecated("another field replaces it; see the comment at the field")]]
  MovedField(U&& value) : value_(std::forward<U>(value)) {}  // NOLINT: assigned like a plain field
  // clang-format on

  // Returns the value that was set, if any.
  const std::optional<T>& given() const { return value_; }

 private:
  std::optional<T> value_;
};

}  // namespace penstock
