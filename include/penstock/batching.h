// SPDX-License-Identifier: Apache-2.0
// Options of the transforms that combine several elements into one: PaddedBatch,
// BucketBySequenceLength, Window, GroupByWindow, Pack.
//
// Components of an element are named as in error messages (Spec::LeafName): "tokens", "a/b", "[1]".
// If an element has a single component, its name is "".
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

#pragma GCC visibility push(default)
namespace penstock {

// A padding value for any dtype that can hold it: an integer for integers and floats, a
// floating-point number for floats, a bool for bool, a string for strings.
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

// Padding values by component. Components that are not named are padded with 0, false or "".
using PaddingValues = std::vector<std::pair<std::string, PaddingValue>>;
// Shapes by component. A known dimension is padded to its size; an unknown dimension is padded to
// the longest in the batch. Components that are not named have the shape in the element's spec.
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
  // Pads unknown dimensions to the longest length that the bucket allows (boundary - 1), not to the
  // longest in the batch. If the length of an element reaches the last boundary, an error then
  // takes the element's place.
  bool pad_to_bucket_boundary = false;
  bool no_padding = false;  // ragged batches (RaggedBatch)
  bool drop_remainder = false;
  // In elements, ≥ 0. When more than max_age elements have been read after the oldest element of a
  // bucket, the bucket becomes a batch although it is not full. Not given: a bucket waits until it
  // is full or the input ends, and a saved position goes back to the oldest waiting element. Cannot
  // be combined with drop_remainder.
  std::optional<int64_t> max_age;
};

struct WindowOptions {
  std::optional<int64_t> shift;  // elements between the starts of windows; not given: `size`
  int64_t stride = 1;            // distance between consecutive elements of a window
  bool drop_remainder = false;   // no windows of fewer than `size` elements
};

struct GroupByWindowOptions {
  bool drop_remainder = false;     // no windows of fewer than `window_size` elements
  std::optional<int64_t> max_age;  // as in BucketBySequenceLengthOptions
};

// What happens to a sequence that is longer than a row.
enum class TooLong : uint8_t {
  kError,     // an error takes its place
  kTruncate,  // each feature is cut to its row's length
  kSplit,     // cut into pieces of a row's length and a rest; each is a segment
};

struct PackOptions {
  // The number of rows that are open at a time. A sequence goes into the oldest row that has space
  // for it. If no row has space, a new row is opened; if more rows than this are then open, the
  // oldest row is returned. With 1, rows contain the sequences in the input's order.
  int64_t open_rows = 1;
  TooLong too_long = TooLong::kError;
  PaddingValues padding_values;  // after the last segment of a row
};
// The row length of each feature of a dict.
using PackLengths = std::vector<std::pair<std::string, int64_t>>;

}  // namespace penstock
#pragma GCC visibility pop
