// SPDX-License-Identifier: Apache-2.0
// Batches of images with their numbers: what I1, I2 and H1 have in common.
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
// Their contents, in the order of their names.
absl::StatusOr<std::vector<std::string>> ReadImages(const std::string& folder);

// (number, image) batches from those files, again and again. `prepare` makes
// an image of bench/jpeg.h's size out of (number, name of its file). The names are
// shuffled with a buffer, if it is not 0.
Dataset ImageBatches(const std::string& folder, int64_t batch, const MapFunction& prepare,
                     int64_t shuffle_buffer = 0);

// Takes such batches: numbers in order, a byte of each page read. `alone`: no other
// reader gets some of them.
std::unique_ptr<Reader> MakeBatchReader(int64_t batch, bool alone = true);
// The same of one worker's numbers in the order of a shuffle, none of them twice.
std::unique_ptr<Reader> MakeShuffledReader(int64_t batch, int64_t shuffle_buffer);

}  // namespace penstock::bench
