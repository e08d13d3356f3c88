// SPDX-License-Identifier: Apache-2.0
// Macros with which one list of fields converts a plain struct to its Protobuf message and back.
// For *_proto.cc files only.
//
//   WIRE_STRUCT(Heard, wire::Heard, life, sequence);
//
//   WIRE_PAIR(StepMark, wire::StepMark) {
//     WIRE_FIELDS(step, row);
//     coder.Require(value.step >= 0, "a step mark has a negative step");
//   }
//
// Each of these defines a function template for both directions: `coder` is an Encoder or a
// Decoder, `value` is the struct, and `message` is the Protobuf message. Encoding cannot fail. A
// Decoder checks input from other processes and keeps the first error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "google/protobuf/repeated_field.h"
#include "penstock/distribute.h"
#include "penstock/ids.h"

namespace penstock::control {

template <class T>
inline constexpr bool kIsId = false;
template <class Tag>
inline constexpr bool kIsId<Id<Tag>> = true;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
// Whether values of type T are scalars in Protobuf, not messages or lists.
template <class T>
inline constexpr bool kIsScalar =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> || kIsId<T>;

// The last value of an enumeration that is sent in messages. The values of such an enumeration are
// 0, 1, …
template <class Enum>
inline constexpr Enum kLast = Enum::kLast;

template <class T>
decltype(auto) Scalar(const T& value) {
  if constexpr (kIsId<T>) {
    return value.value();
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<uint32_t>(value);
  } else {
    return (value);
  }
}

class Encoder {
 public:
  // `format`: of the journal that is written (control/state/format.h); messages have none.
  explicit Encoder(uint32_t format = 0) : format_(format) {}

  static constexpr bool kEncodes = true;
  template <class T>
  using Value = const T&;
  template <class Message>
  using Wire = Message&;

  template <class T, class Message>
  void Put(const T& value, Message* message) {
    Fields(*this, value, *message);
  }
  template <class List, class Message>
  void Put(const List& list, google::protobuf::RepeatedPtrField<Message>* to) {
    to->Reserve(to->size() + static_cast<int>(list.size()));
    for (const auto& value : list) {
      if constexpr (std::is_same_v<Message, std::string>) {
        *to->Add() = value;
      } else {
        Put(value, to->Add());
      }
    }
  }
  template <class List, class T>
  void Put(const List& list, google::protobuf::RepeatedField<T>* to) {
    for (const auto& value : list) to->Add(Scalar(value));
  }

  template <class... Words>
  void Require(bool, const Words&...) {}

  uint32_t format() const { return format_; }

 private:
  const uint32_t format_;
};

class Decoder {
 public:
  static constexpr bool kEncodes = false;
  template <class T>
  using Value = T&;
  template <class Message>
  using Wire = const Message&;

  // Reads a field; `name` is for errors.
  template <class T, class From>
  void Get(const char* name, const From& from, T& to) {
    if constexpr (std::is_enum_v<T>) {
      Require(from <= static_cast<uint32_t>(kLast<T>), "unknown value ", from, " of ", name);
      to = static_cast<T>(from);
    } else if constexpr (kIsScalar<T>) {
      to = static_cast<T>(from);
    } else {
      Fields(*this, to, from);
    }
  }
  void Get(const char* name, uint32_t from, ShardingPolicy& to);
  template <class List, class Message>
  requires requires(List list) { list.emplace_back(); }
  void Get(const char* name, const google::protobuf::RepeatedPtrField<Message>& from, List& to) {
    to.reserve(from.size());
    for (const Message& message : from) Get(name, message, to.emplace_back());
  }
  template <class List, class T>
  void Get(const char* name, const google::protobuf::RepeatedField<T>& from, List& to) {
    to.reserve(from.size());
    for (const T& value : from) Get(name, value, to.emplace_back());
  }

  // If `condition` is false, the decoder's error becomes InvalidArgument with these words.
  template <class... Words>
  void Require(bool condition, const Words&... words) {
    if (!condition) Fail(absl::InvalidArgumentError(absl::StrCat(words...)));
  }
  void Fail(absl::Status error) { status_.Update(std::move(error)); }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

template <class T, class Message>
absl::StatusOr<T> Decode(const Message& message) {
  Decoder decoder;
  T value;
  decoder.Get("message", message, value);
  if (!decoder.status().ok()) return decoder.status();
  return value;
}

}  // namespace penstock::control

// clang-format off

// Begins the list of fields of a struct and its message.
#define WIRE_PAIR(Type, Message)                                                \
  template <class Coder>                                                        \
  void Fields([[maybe_unused]] Coder& coder,                                    \
              [[maybe_unused]] typename Coder::template Value<Type> value,      \
              [[maybe_unused]] typename Coder::template Wire<Message> message)

// Pairs a member with a field that has a different name. An optional member without a value is
// absent in the message.
#define WIRE_FIELD_AS(member, field)                                            \
  if constexpr (kIsOptional<std::remove_cvref_t<decltype(value.member)>>) {     \
    if constexpr (!Coder::kEncodes) {                                           \
      if (message.has_##field())                                                \
        coder.Get(#field, message.field(), value.member.emplace());             \
    } else if (value.member.has_value()) {                                      \
      WIRE_PUT(*value.member, field)                                            \
    }                                                                           \
  } else if constexpr (Coder::kEncodes) {                                       \
    WIRE_PUT(value.member, field)                                               \
  } else {                                                                      \
    coder.Get(#field, message.field(), value.member);                           \
  }                                                                             \
  static_assert(true)
#define WIRE_PUT(from, field)                                                   \
  if constexpr (kIsScalar<std::remove_cvref_t<decltype(from)>>) {               \
    message.set_##field(Scalar(from));                                          \
  } else {                                                                      \
    coder.Put(from, message.mutable_##field());                                 \
  }

#define WIRE_FIELD(member) WIRE_FIELD_AS(member, member)

// Pairs a member with the field of the same name. The field is absent in the message unless
// `written` is true. If the field is absent, the member keeps its default.
#define WIRE_FIELD_IF(written, member)                                          \
  if constexpr (Coder::kEncodes) {                                              \
    if (written) {                                                              \
      WIRE_PUT(value.member, member)                                            \
    }                                                                           \
  } else if (message.has_##member()) {                                          \
    coder.Get(#member, message.member(), value.member);                         \
  }                                                                             \
  static_assert(true)

// Pairs a duration with the field that contains it in nanoseconds.
#define WIRE_NANOSECONDS_AS(member, field)                                      \
  if constexpr (Coder::kEncodes) {                                              \
    message.set_##field(absl::ToInt64Nanoseconds(value.member));                \
  } else {                                                                      \
    value.member = absl::Nanoseconds(message.field());                          \
  }                                                                             \
  static_assert(true)
#define WIRE_NANOSECONDS_OF(member) WIRE_NANOSECONDS_AS(member, member##_ns)

// Pairs `value` itself with a field that contains some of its members.
#define WIRE_PART(field)                                                        \
  if constexpr (Coder::kEncodes) {                                              \
    coder.Put(value, message.mutable_##field());                                \
  } else {                                                                      \
    coder.Get(#field, message.field(), value);                                  \
  }                                                                             \
  static_assert(true)

// Pairs an alternative of the variant `value` with a field in a oneof of `message`.
#define WIRE_CASE(Alternative, field)                                           \
  if constexpr (Coder::kEncodes) {                                              \
    if (const auto* chosen = std::get_if<Alternative>(&value))                  \
      coder.Put(*chosen, message.mutable_##field());                            \
  } else if (message.has_##field()) {                                           \
    coder.Get(#field, message.field(), value.template emplace<Alternative>());  \
  }                                                                             \
  static_assert(true)
// Does the same for an alternative with one member, which is a scalar.
#define WIRE_CASE_SCALAR(Alternative, member, field)                            \
  if constexpr (Coder::kEncodes) {                                              \
    if (const auto* chosen = std::get_if<Alternative>(&value))                  \
      message.set_##field(Scalar(chosen->member));                              \
  } else if (message.has_##field()) {                                           \
    coder.Get(#field, message.field(),                                          \
              value.template emplace<Alternative>().member);                    \
  }                                                                             \
  static_assert(true)

// Pairs a struct with its message, if each member has the name of its field.
#define WIRE_STRUCT(Type, Message, ...)                                         \
  WIRE_PAIR(Type, Message) { WIRE_FIELDS(__VA_ARGS__); }                        \
  static_assert(true)

// Defines ToWire and FromWire for a struct and the message of the same name.
#define WIRE_CONVERTERS(Type)                                                   \
  void ToWire(const Type& from, wire::Type* to) { Encoder().Put(from, to); }    \
  absl::StatusOr<Type> FromWire(const wire::Type& from) { return Decode<Type>(from); } \
  static_assert(true)

// Apply the macros above to a list of at most 20 members: WIRE_FIELDS(a, b, c), WIRE_NANOSECONDS(a,
// b).
#define WIRE_FIELDS(...) WIRE_EACH(WIRE_FIELD, __VA_ARGS__)
#define WIRE_NANOSECONDS(...) WIRE_EACH(WIRE_NANOSECONDS_OF, __VA_ARGS__)
#define WIRE_EACH(macro, ...) WIRE_EXPAND(WIRE_NEXT(macro, __VA_ARGS__)) static_assert(true)
#define WIRE_NEXT(macro, first, ...) \
  macro(first); __VA_OPT__(WIRE_AGAIN WIRE_NOTHING (macro, __VA_ARGS__))
#define WIRE_AGAIN() WIRE_NEXT
#define WIRE_NOTHING ()
#define WIRE_EXPAND(...) WIRE_EXPAND2(WIRE_EXPAND2(WIRE_EXPAND2(WIRE_EXPAND2(__VA_ARGS__))))
#define WIRE_EXPAND2(...) WIRE_EXPAND1(WIRE_EXPAND1(WIRE_EXPAND1(WIRE_EXPAND1(__VA_ARGS__))))
#define WIRE_EXPAND1(...) __VA_ARGS__

// clang-format on
