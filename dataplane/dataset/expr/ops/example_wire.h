// SPDX-License-Identifier: Apache-2.0
// tf.train.Example as bytes, in Protobuf's wire format:
//
//   Example  { Features features = 1; }
//   Features { map<string, Feature> feature = 1; }
//   Feature  { oneof { BytesList bytes_list = 1; FloatList float_list = 2;
//                      Int64List int64_list = 3; } }
//   …List    { repeated … value = 1; }      numbers packed or one by one
//
// Read in place: nothing is allocated per value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace penstock {

// One feature: the last kind in the message, and the bytes of all lists of that kind. Together
// these lists contain the feature's values.
struct WireFeature {
  enum class Kind : uint8_t { kNone = 0, kBytes = 1, kFloats = 2, kInts = 3 };
  Kind kind = Kind::kNone;
  absl::InlinedVector<std::string_view, 1> lists;
};

// Calls feature(name, value bytes) for every entry of the map, in the order of the bytes; if a name
// occurs several times, the last entry counts. DataLoss names the offset.
absl::Status ForEachFeature(std::string_view example,
                            absl::FunctionRef<void(std::string_view, std::string_view)> feature);

absl::StatusOr<WireFeature> ReadFeature(std::string_view feature);

// Calls value(v) for each value in order. REQUIRES: the feature has that kind.
absl::Status ForEachBytes(const WireFeature& feature,
                          absl::FunctionRef<void(std::string_view)> value);
absl::Status ForEachFloat(const WireFeature& feature, absl::FunctionRef<void(float)> value);
absl::Status ForEachInt(const WireFeature& feature, absl::FunctionRef<void(int64_t)> value);

}  // namespace penstock
