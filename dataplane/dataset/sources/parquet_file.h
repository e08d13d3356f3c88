// SPDX-License-Identifier: Apache-2.0
// Columns of one Parquet file, by row group, by Arrow.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "control/env/files.h"
#include "dataplane/dataset/function.h"
#include "penstock/spec.h"

namespace penstock {

// OK if a column can be read as `leaf`, whatever a file holds: a scalar, a
// string, or one dimension of numbers. InvalidArgument says so.
absl::Status CheckParquetLeaf(const TensorSpec& leaf);

// One thread. Errors name the file and the column.
class ParquetFile {
 public:
  // `columns`: a dict of leaves that CheckParquetLeaf() allows. NotFound lists
  // the columns there are; InvalidArgument for one of another type.
  static absl::StatusOr<std::unique_ptr<ParquetFile>> Open(std::unique_ptr<File> file,
                                                           const Spec& columns);
  ~ParquetFile();

  const std::vector<int64_t>& group_rows() const { return group_rows_; }  // of each row group

  // Reads the columns of that row group, which takes the place of the last one.
  // What failed once is not tried again.
  absl::Status Load(int64_t group);
  // Gives row `row` of the group that was loaded to `sink`. InvalidArgument for
  // a null where the leaf is not optional.
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
