// SPDX-License-Identifier: Apache-2.0
// The names that sources had before 0.9. Release 0.10 removes them.
#include <string>
#include <utility>
#include <vector>

#include "penstock/dataset.h"
#include "penstock/sources.h"

namespace penstock {

Dataset FixedLengthRecordDataset(FileNames files, int64_t record_bytes,
                                 FixedLengthRecordOptions options) {
  return Dataset::FixedLengthRecord(std::move(files), record_bytes, options);
}

Dataset TarShards(FileNames files, std::vector<std::string> fields, TarShardsOptions options) {
  return Dataset::TarShards(std::move(files), std::move(fields), options);
}

Dataset TokenShards(FileNames files, int64_t length, TokenShardsOptions options) {
  return Dataset::TokenShards(std::move(files), length, options);
}

Dataset NpyDataset(FileNames files, const Spec& spec, NpyOptions options) {
  return Dataset::Npy(std::move(files), spec, options);
}

Dataset Parquet(FileNames files, const Spec& columns) {
  return Dataset::Parquet(std::move(files), columns);
}

Dataset ImageDirectory(const std::string& root, ImageDirectoryOptions options) {
  return Dataset::ImageDirectory(root, options);
}

Dataset RangeOf(const Expr& stop) {
  return Dataset::Range(stop);
}

Dataset TensorsOf(const Expr& element) {
  return Dataset::FromTensors(element);
}

Dataset TensorSlicesOf(const Expr& element) {
  return Dataset::FromTensorSlices(element);
}

}  // namespace penstock
