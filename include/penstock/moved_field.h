// SPDX-License-Identifier: Apache-2.0
// A field of an options struct that another field replaces. In release 0.9 it can still be set like
// a T (the compiler then warns), but it cannot be read. Release 0.10 removes such fields.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <utility>

#pragma GCC visibility push(default)
namespace penstock {

#define PENSTOCK_MOVED [[deprecated("another field replaces it; see the comment at the field")]]

// clang-format off
namespace moved_internal {
// The type of T's items if T is a list.
template <class T>
struct Item {
  struct type {};
};
template <class T>
  requires requires { typename T::value_type; }
struct Item<T> {
  using type = typename T::value_type;
};
}  // namespace moved_internal

template <class T>
class MovedField {
 public:
  MovedField() = default;
  // Can be made from everything from which a T can be made: a value, an optional, a list of items,
  // or a list of members.
  template <class U = T>
    requires std::convertible_to<U, T>
  PENSTOCK_MOVED MovedField(U&& value) : value_(std::forward<U>(value)) {}  // NOLINT
  template <class U>
    requires std::convertible_to<U, T>
  PENSTOCK_MOVED MovedField(std::optional<U> value) : value_(std::move(value)) {}  // NOLINT
  PENSTOCK_MOVED MovedField(std::nullopt_t) {}                                     // NOLINT
  PENSTOCK_MOVED MovedField(std::initializer_list<typename moved_internal::Item<T>::type> items)
    requires std::constructible_from<T, decltype(items)>
      : value_(std::in_place, items) {}
  template <class First, class Second, class... More>
    requires requires(First a, Second b, More... more) { T{a, b, more...}; }
  PENSTOCK_MOVED MovedField(First a, Second b, More... more) : value_(T{a, b, more...}) {}

  // clang-format on
  // Returns the value that was set, if any.
  const std::optional<T>& given() const { return value_; }

 private:
  std::optional<T> value_;
};

#undef PENSTOCK_MOVED

}  // namespace penstock
#pragma GCC visibility pop
