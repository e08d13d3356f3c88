// SPDX-License-Identifier: Apache-2.0
// Each pipeline gives TensorFlow's results (expected.txt). Intended differences have no pipelines
// here; docs/datasets.md lists them.
#include "tests/dataplane/dataset/tensorflow/pipelines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "include/status_macros.h"
#include "penstock/register.h"
#include "tests/dataplane/dataset/transforms/text_of.h"

namespace penstock::tensorflow {
namespace {

absl::Status Range(CallContext& call) {
  const int64_t dims[] = {call.inputs()[0].scalar<int64_t>()};
  ASSIGN_OR_RETURN(absl::Span<int64_t> out, call.OutputAs<int64_t>(0, dims));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int64_t>(i);
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("tensorflow.range", 1, Dense(kInt64, Shape({kUnknownDim})), Range);

// Returns an n × (4 - n) matrix of n.
absl::Status FillMatrix(CallContext& call) {
  const int64_t n = call.inputs()[0].scalar<int64_t>();
  const int64_t dims[] = {n, 4 - n};
  ASSIGN_OR_RETURN(absl::Span<int64_t> out, call.OutputAs<int64_t>(0, dims));
  std::fill(out.begin(), out.end(), n);
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("tensorflow.filled", 1, Dense(kInt64, Shape({kUnknownDim, kUnknownDim})),
                      FillMatrix);

struct Expected {
  Cardinality cardinality = kUnknown;
  bool any_order = false;
  std::vector<std::string> elements;
};

std::map<std::string, Expected> ReadExpected() {
  std::map<std::string, Expected> all;
  std::ifstream in(absl::StrCat(TEST_FOLDER, "/expected.txt"));
  std::string line;
  Expected* current = nullptr;
  while (std::getline(in, line)) {
    if (absl::StartsWith(line, "#")) continue;
    if (absl::StartsWith(line, "  ")) {
      current->elements.push_back(line.substr(2));
      continue;
    }
    const std::vector<std::string> parts = absl::StrSplit(line, ' ');
    current = &all[parts[0]];
    EXPECT_TRUE(absl::SimpleAtoi(parts[1].substr(parts[1].find('=') + 1), &current->cardinality));
    current->any_order = parts.back() == "any_order";
  }
  return all;
}

std::vector<Pipeline> AllPipelines() {
  std::vector<Pipeline> all;
  for (auto* part : {SourcePipelines, TransformPipelines, BatchPipelines})
    for (Pipeline& pipeline : part()) all.push_back(std::move(pipeline));
  return all;
}

std::vector<std::string> Elements(const Pipeline& pipeline) {
  if (pipeline.reduce == nullptr) return ReadAll(pipeline.make());
  const absl::StatusOr<Element> last = pipeline.reduce();
  return {last.ok() ? TextOf(*last) : last.status().ToString()};
}

class TensorFlow : public ::testing::TestWithParam<Pipeline> {};

TEST_P(TensorFlow, GivesTheSame) {
  const Pipeline& pipeline = GetParam();
  const std::map<std::string, Expected> all = ReadExpected();
  ASSERT_TRUE(all.contains(pipeline.name)) << "run write_expected.py";
  const Expected& expected = all.at(pipeline.name);
  std::vector<std::string> elements = Elements(pipeline);
  if (expected.any_order) std::sort(elements.begin(), elements.end());
  EXPECT_EQ(elements, expected.elements) << pipeline.make().Explain();
  // If TensorFlow knows the cardinality, it must be the same; otherwise ours may be known.
  // TensorFlow regards a finite choice among endless datasets as endless.
  if (expected.cardinality == kUnknown || pipeline.reduce != nullptr) return;
  if (pipeline.name == "choose_documented") return;
  EXPECT_EQ(pipeline.make().cardinality(), expected.cardinality) << pipeline.make().Explain();
}

INSTANTIATE_TEST_SUITE_P(Pipelines, TensorFlow, ::testing::ValuesIn(AllPipelines()),
                         [](const auto& info) { return info.param.name; });

TEST(TensorFlowTable, NoPipelineIsLeftOut) {
  std::map<std::string, Expected> missing = ReadExpected();
  ASSERT_FALSE(missing.empty());
  for (const Pipeline& pipeline : AllPipelines()) missing.erase(pipeline.name);
  std::string names;
  for (const auto& [name, expected] : missing) absl::StrAppend(&names, name, " ");
  EXPECT_EQ(names, "");
}

}  // namespace

std::string DataFile(const std::string& name) {
  return absl::StrCat(TEST_FOLDER, "/data/", name);
}

Expr RangeTensor(const Expr& n) {
  return Call("tensorflow.range", n);
}
Dataset Vectors(std::vector<int64_t> lengths) {
  return Numbers(std::move(lengths)).Map(RangeTensor);
}

}  // namespace penstock::tensorflow
