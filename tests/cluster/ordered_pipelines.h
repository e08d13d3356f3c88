// SPDX-License-Identifier: Apache-2.0
// Pipelines that are read in order kDeterministic.
#pragma once

#include <cstdint>
#include <ostream>

#include "penstock/penstock.h"

namespace penstock {

inline constexpr int64_t kOrderedCount = 4000;

struct Pipeline {
  const char* name;
  Dataset (*make)();
};
inline void PrintTo(const Pipeline& pipeline, std::ostream* out) {
  *out << pipeline.name;
}

inline Dataset Filtered() {
  return Dataset::Range(kOrderedCount).Filter([](auto x) { return x % 3 != 0; });
}
inline Dataset Shuffled() {
  return Dataset::Range(kOrderedCount).Shuffle(64, {.seed = 5}).Map([](auto x) { return x + 0; });
}
inline Dataset Mixed() {
  return Dataset::SampleFromDatasets(
      {Dataset::Range(0, 2000), Dataset::Range(2000, 3000), Dataset::Range(3000, kOrderedCount)},
      {.weights = {0.5, 0.3, 0.2}, .seed = 3, .stop_on_empty_dataset = false});
}

}  // namespace penstock
