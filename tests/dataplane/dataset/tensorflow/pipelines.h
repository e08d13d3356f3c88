// SPDX-License-Identifier: Apache-2.0
// The pipelines of write_expected.py, built with Penstock under the same names.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/dataset.h"
#include "penstock/sources.h"  // IWYU pragma: export

namespace penstock::tensorflow {

struct Pipeline {
  std::string name;
  std::function<Dataset()> make;
  // For Reduce: reads this element in place of the dataset's elements.
  std::function<absl::StatusOr<Element>()> reduce = nullptr;

  friend void PrintTo(const Pipeline& pipeline, std::ostream* out) { *out << pipeline.name; }
};

std::vector<Pipeline> SourcePipelines();     // sources, and nodes that join datasets
std::vector<Pipeline> TransformPipelines();  // elementwise nodes, functions, cutting, Reduce
std::vector<Pipeline> BatchPipelines();      // nodes that batch

// Returns the path of a file in data/.
std::string DataFile(const std::string& name);

inline Dataset Numbers(std::vector<int64_t> values) {
  return Dataset::FromTensorSlices<int64_t>(std::move(values));
}
inline Dataset Strings(std::vector<std::string> values) {
  return Dataset::FromTensorSlices<std::string>(std::move(values));
}
// Returns three rows of two numbers.
inline Dataset Matrix() {
  const int64_t values[] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {3, 2};
  return Dataset::FromTensorSlices({Tensor(kInt64, dims, values)}, Dense(kInt64, Shape({3, 2})));
}
// Returns 0, 1 … n - 1 as one tensor.
Expr RangeTensor(const Expr& n);
Dataset Vectors(std::vector<int64_t> lengths);

}  // namespace penstock::tensorflow
