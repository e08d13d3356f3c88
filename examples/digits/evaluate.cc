// SPDX-License-Identifier: Apache-2.0
// Averages the weights of the trainers' checkpoints, weighted by trained rows. Prints the share of
// correct answers on the held-out rows, from 0 to 1.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <vector>

#include "examples/digits/pipeline.h"
#include "examples/digits/softmax.h"

namespace digits {
namespace {

// Returns the mean of the models, each weighted by its trained rows.
absl::StatusOr<Softmax> Average(const std::vector<std::string>& checkpoints) {
  Softmax mean;
  double total = 0;
  for (const std::string& path : checkpoints) {
    std::ifstream in(path, std::ios::binary);
    int64_t rows;
    Softmax::Weights weights;
    in.read(reinterpret_cast<char*>(&rows), sizeof rows);
    in.read(reinterpret_cast<char*>(weights.data()), sizeof weights);
    if (!in) return absl::NotFoundError(absl::StrCat("no checkpoint at ", path));
    total += static_cast<double>(rows);
    for (int i = 0; i < Softmax::kWeights; ++i) mean.weights[i] += weights[i] * rows;
  }
  for (float& weight : mean.weights) weight /= static_cast<float>(total);
  return mean;
}

absl::Status Evaluate(const std::string& files, const std::vector<std::string>& checkpoints) {
  PENSTOCK_ASSIGN_OR_RETURN(Softmax model, Average(checkpoints));
  PENSTOCK_ASSIGN_OR_RETURN(penstock::Iterator it, Rows(files, 0).MakeIterator());
  int64_t right = 0, rows = 0;
  while (true) {
    PENSTOCK_ASSIGN_OR_RETURN(std::optional<penstock::Element> row, it.Next());
    if (!row) break;
    right += model.Predict((*row)["image"].data<float>()) == (*row)["label"].scalar<int64_t>();
    ++rows;
  }
  std::printf("%.4f\n", static_cast<double>(right) / rows);
  return absl::OkStatus();
}

}  // namespace
}  // namespace digits

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: digits_evaluate HELD_OUT_PATTERN CHECKPOINT…\n";
    return 2;
  }
  if (absl::Status status = digits::Evaluate(argv[1], {argv + 2, argv + argc}); !status.ok()) {
    std::cerr << "digits_evaluate: " << status << '\n';
    return 1;
  }
  return 0;
}
