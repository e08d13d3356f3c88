// SPDX-License-Identifier: Apache-2.0
// Options of the transforms that put several elements into one: PaddedBatch,
// BucketBySequenceLength, Window, GroupByWindow, Pack.
//
// Components of an element are named as messages name them (Spec::LeafName):
// "tokens", "a/b", "[1]"; the only component of an element has the name "".
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "penstock/spec.h"

namespace penstock {

// A value for any dtype that holds it: an integer for integers and floats, a
// floating number for floats, a bool for bool, a string for strings.
class PaddingValue {
 public:
  // clang-format off
  template <class T>
    requires std::is_arithmetic_v<T>
  PaddingValue(T value) {  // NOLINT: -1 is a padding value
    if constexpr (std::same_as<T, bool>) value_ = value;
    else if constexpr (std::integral<T>) value_ = static_cast<int64_t>(value);
    else value_ = static_cast<double>(value);
  }
  // clang-format on
  PaddingValue(std::string_view value) : value_(std::string(value)) {}               // NOLINT
  PaddingValue(const char* value) : PaddingValue(std::string_view(value)) {}         // NOLINT
  PaddingValue(const std::string& value) : PaddingValue(std::string_view(value)) {}  // NOLINT

  using Value = std::variant<int64_t, double, bool, std::string>;
  const Value& value() const { return value_; }

 private:
  Value value_;
};

// By component; those not named are padded with 0, false or "".
using PaddingValues = std::vector<std::pair<std::string, PaddingValue>>;
// By component: a known dimension is padded to that size, an unknown one to the
// longest in the batch. Those not named keep the shape of the element's spec.
using PaddedShapes = std::vector<std::pair<std::string, Shape>>;

struct Padding {
  PaddedShapes padded_shapes;
  PaddingValues padding_values;
};

struct PaddedBatchOptions {
  PaddedShapes padded_shapes;
  PaddingValues padding_values;
  bool drop_remainder = false;
};

struct BucketBySequenceLengthOptions {
  PaddedShapes padded_shapes;
  PaddingValues padding_values;
  // Unknown dimensions are padded to the longest length of the bucket, its
  // boundary - 1, rather than to the longest in the batch. An element that
  // belongs behind the last boundary is then an error in its place.
  bool pad_to_bucket_boundary = false;
  bool no_padding = false;  // ragged batches (RaggedBatch)
  bool drop_remainder = false;
  // A bucket is sent on short when more than so many elements were read behind
  // its oldest one. Not given: it waits until it is full or the input ends, and
  // a saved position is then as far back as the oldest element waiting.
  std::optional<int64_t> max_age;
};

struct WindowOptions {
  std::optional<int64_t> shift;  // elements from one window's first to the next's; `size`
  int64_t stride = 1;            // elements from one to the next inside a window
  bool drop_remainder = false;   // no windows of fewer than `size` elements
};

struct GroupByWindowOptions {
  bool drop_remainder = false;     // no windows of fewer than `window_size` elements
  std::optional<int64_t> max_age;  // as in BucketBySequenceLengthOptions
};

// What becomes of a sequence that is longer than a row.
enum class TooLong : uint8_t {
  kError,     // an error in its place
  kTruncate,  // each feature is cut to its row's length
  kSplit,     // pieces of a row's length and a rest, each a segment of its own
};

struct PackOptions {
  // Rows open at a time. A sequence goes into the first row that has room, in
  // the order they were opened; where none has, the oldest row is given out. 1:
  // rows hold the sequences in the input's order.
  int64_t open_rows = 1;
  TooLong too_long = TooLong::kError;
  PaddingValues padding_values;  // behind the last segment of a row
};
// Row length of each feature of a dict.
using PackLengths = std::vector<std::pair<std::string, int64_t>>;

}  // namespace penstock
