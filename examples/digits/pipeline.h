// SPDX-License-Identifier: Apache-2.0
// The dataset that trainers and evaluation share.
#pragma once

#include <cstdint>
#include <string>

#include "penstock/penstock.h"

namespace digits {

// Rows {image: float32 [64] in 0…1, label: int64, number: int64} of the
// TFRecord shards that match `files`, the files in an order that `seed` gives.
inline penstock::Dataset Rows(const std::string& files, uint64_t seed) {
  namespace ps = penstock;
  return ps::Dataset::ListFiles(files, {.shuffle = true, .seed = seed})
      .Interleave(ps::TFRecordDataset, {.cycle_length = 2})
      .ParseExample({{"image", ps::Bytes()},
                     {"label", ps::Scalar(ps::kInt64)},
                     {"number", ps::Scalar(ps::kInt64)}})
      .Map([](auto row) {
        return ps::Struct(
            {{"image", ps::Cast(ps::DecodeRaw(row["image"], ps::kUInt8, {64}), ps::kFloat32) / 16},
             {"label", row["label"]},
             {"number", row["number"]}});
      });
}

}  // namespace digits
