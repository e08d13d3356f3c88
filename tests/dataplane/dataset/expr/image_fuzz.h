// SPDX-License-Identifier: Apache-2.0
// Common code of the fuzzers of image files: the first byte picks a function, the rest is the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "penstock/check.h"
#include "tests/dataplane/dataset/expr/run_function.h"
#include "tests/dataplane/dataset/expr/small_values.h"

namespace penstock {

class ImageFuzz {
 public:
  explicit ImageFuzz(const std::vector<MapFunction>& functions) {
    for (const MapFunction& fn : functions)
      functions_.push_back(*BoundFunction::Bind(*Trace(fn, Bytes())));
  }

  // Aborts on any failure other than a status that blames the file.
  void Run(const uint8_t* data, size_t size) const {
    if (size == 0) return;
    const std::string file(reinterpret_cast<const char*>(data) + 1, size - 1);
    const auto made =
        RunBound(*functions_[data[0] % functions_.size()], {String(file)}, {.element = data[0]});
    if (made.ok()) return;
    PENSTOCK_CHECK(made.status().code() == absl::StatusCode::kDataLoss ||
                   made.status().code() == absl::StatusCode::kInvalidArgument ||
                   made.status().code() == absl::StatusCode::kResourceExhausted);
  }

 private:
  std::vector<std::shared_ptr<const BoundFunction>> functions_;
};

}  // namespace penstock
