// SPDX-License-Identifier: Apache-2.0
// Batches of images with their numbers: shared by I1, I2 and H1.
#pragma once

#include <string>
#include <vector>

#include "bench/jpeg.h"
#include "bench/workload.h"
#include "penstock/map.h"

namespace penstock::bench {

inline constexpr int kFiles = 16;

// Writes kFiles JPEGs (bench/jpeg.h) into the folder.
absl::Status WriteImages(const std::string& folder, const ImageSize& size = {});
// Returns their contents, in the order of their names.
absl::StatusOr<std::vector<std::string>> ReadImages(const std::string& folder);

// Returns endless (number, image) batches from those files. `prepare` makes an image of
// bench/jpeg.h's size from (number, name of its file). A `shuffle_buffer` above 0 shuffles the
// names.
Dataset ImageBatches(const std::string& folder, int64_t batch, const MapFunction& prepare,
                     int64_t shuffle_buffer = 0);

// Reads such batches: checks that numbers are in order and reads a byte of each page. `alone`: this
// reader gets all batches.
std::unique_ptr<Reader> MakeBatchReader(int64_t batch, bool alone = true);
// Reads batches of one worker in shuffled order, and checks that no number comes twice.
std::unique_ptr<Reader> MakeShuffledReader(int64_t batch, int64_t shuffle_buffer);

}  // namespace penstock::bench
