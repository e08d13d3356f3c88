// SPDX-License-Identifier: Apache-2.0
// Columns of one Parquet file, read by row group with Arrow.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "control/env/files.h"
#include "dataplane/dataset/expr/function.h"
#include "penstock/spec.h"

namespace penstock {

// Checks that a column can be read as `leaf` in principle: a scalar, a string, or one dimension of
// numbers. InvalidArgument otherwise.
absl::Status CheckParquetLeaf(const TensorSpec& leaf);

// Used on one thread. Errors name the file and the column.
class ParquetFile {
 public:
  // `columns` is a dict of leaves that CheckParquetLeaf() allows. NotFound lists the columns that
  // exist. InvalidArgument if a column has a different type.
  static absl::StatusOr<std::unique_ptr<ParquetFile>> Open(std::unique_ptr<File> file,
                                                           const Spec& columns);
  ~ParquetFile();

  const std::vector<int64_t>& group_rows() const { return group_rows_; }  // of each row group

  // Reads the columns of the row group, which replaces the previous one. If reading fails, another
  // call for the same group returns the same error without trying again.
  absl::Status Load(int64_t group);
  // Copies row `row` of the loaded group to `sink`. InvalidArgument for a null if the leaf is not
  // optional.
  absl::Status Fill(int64_t row, ResultSink& sink) const;

 private:
  struct Arrow;
  ParquetFile(std::string name, const Spec& columns);

  std::string name_;
  Spec columns_;
  std::vector<int64_t> group_rows_;
  std::unique_ptr<Arrow> arrow_;
};

}  // namespace penstock
