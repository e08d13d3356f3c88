// SPDX-License-Identifier: Apache-2.0
// The dataset of trainers and evaluation.
#pragma once

#include <cstdint>
#include <string>

#include "penstock/penstock.h"

namespace digits {

// Returns rows {image: float32 [64] in 0…1, label: int64, number: int64} of the TFRecord shards
// that match `files`. `seed` determines the order of the files.
inline penstock::Dataset Rows(const std::string& files, uint64_t seed) {
  namespace ps = penstock;
  return ps::Dataset::ListFiles(files, {.shuffle = true, .seed = seed})
      .Interleave(ps::Dataset::TFRecord, {.cycle_length = 2})
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
