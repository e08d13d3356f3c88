// SPDX-License-Identifier: Apache-2.0
// Parquet, on a file that pyarrow wrote. Without Arrow, the error that says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "control/env/fake_files.h"
#include "dataplane/dataset/graph/registry.h"
#include "dataplane/dataset/graph/split.h"
#include "dataplane/memory/element_limit.h"
#include "penstock/sources.h"
#include "tests/dataplane/dataset/transforms/text_of.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Strings = std::vector<std::string>;

constexpr char kTable[] = TEST_DATA "/table.parquet";

Spec Columns(std::vector<std::pair<std::string, Spec>> columns) {
  return Spec::Dict(std::move(columns));
}

class ParquetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (FindNodeKind("Parquet") == nullptr) GTEST_SKIP() << "built without Arrow";
  }
};

TEST(ParquetWithoutArrow, SaysSo) {
  if (FindNodeKind("Parquet") != nullptr) GTEST_SKIP() << "built with Arrow";
  const absl::Status status = Dataset::Parquet(kTable, Columns({{"id", Scalar(kInt64)}})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.ToString(), HasSubstr("built without Arrow"));
}

TEST_F(ParquetTest, RowsOfTheColumnsAskedFor) {
  const Strings rows = ReadAll(Dataset::Parquet(
      kTable, Columns({{"id", Scalar(kInt64)}, {"name", Bytes()}, {"good", Scalar(kBool)}})));
  ASSERT_THAT(rows, SizeIs(7));
  EXPECT_EQ(rows[0], "{good: true, id: 0, name: row 0}");
  EXPECT_EQ(rows[3], "{good: false, id: 3, name: row 3}");
  EXPECT_EQ(rows[6], "{good: true, id: 6, name: row 6}");
}

TEST_F(ParquetTest, ListsAreOfOneDimension) {
  const Spec spec =
      Columns({{"pair", Dense(kInt32, {2})}, {"weights", Dense(kFloat32, Shape({kUnknownDim}))}});
  const Strings rows = ReadAll(Dataset::Parquet(kTable, spec));
  ASSERT_THAT(rows, SizeIs(7));
  EXPECT_EQ(rows[0], "{pair: [0, 0], weights: []}");
  EXPECT_EQ(rows[3], "{pair: [3, -3], weights: [0.5, 1, 1.5]}");
  EXPECT_EQ(rows[4], "{pair: [4, -4], weights: []}");
}

TEST_F(ParquetTest, NullsNeedAnOptionalLeaf) {
  const Strings strict = ReadAll(Dataset::Parquet(kTable, Columns({{"score", Scalar(kFloat64)}})));
  ASSERT_THAT(strict, SizeIs(7));
  EXPECT_EQ(strict[0], "{score: float64}");
  EXPECT_THAT(strict[1], AllOf(HasSubstr("Parquet#0"), HasSubstr("table.parquet"),
                               HasSubstr("'score' is null in row 1 of row group 0")));
  TensorSpec optional = Scalar(kFloat64);
  optional.optional = true;
  EXPECT_THAT(ReadAll(Dataset::Parquet(kTable, Columns({{"score", optional}}))), SizeIs(7));
}

TEST_F(ParquetTest, MismatchesAreNamed) {
  const auto error = [](const Spec& spec) {
    const Strings all = ReadAll(Dataset::Parquet(kTable, spec));
    EXPECT_THAT(all, ElementsAre(StartsWith("error: Parquet#0: ")));
    return all.at(0);
  };
  EXPECT_THAT(error(Columns({{"missing", Scalar(kInt64)}})),
              AllOf(HasSubstr("no column 'missing'"), HasSubstr("id name good")));
  EXPECT_THAT(error(Columns({{"id", Scalar(kInt32)}})),
              AllOf(HasSubstr("column 'id' is int64"), HasSubstr("int32")));
  EXPECT_THAT(ReadAll(Dataset::Parquet(kTable, Columns({{"weights", Dense(kFloat32, {3})}}))),
              Each(testing::AnyOf(HasSubstr("[0.5, 1, 1.5]"), HasSubstr("not TensorSpec"))));
  EXPECT_THAT(Dataset::Parquet("a", Columns({{"m", Dense(kFloat32, {2, 2})}})).status().ToString(),
              AllOf(HasSubstr("Parquet#0"), HasSubstr("one dimension")));
  EXPECT_THAT(Dataset::Parquet("a", Scalar(kInt64)).status().ToString(), HasSubstr("a dict"));
}

TEST_F(ParquetTest, ASplitIsARowGroup) {
  const auto plan =
      PlanSplits(Dataset::Parquet({kTable, kTable}, Columns({{"id", Scalar(kInt64)}})));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->providers.at(0).count, 6);
}

TEST_F(ParquetTest, TooLargeRowsAreNamed) {
  const auto error = [](int64_t most) {
    const int64_t before = MostElementBytes();
    LimitElementBytes(most);
    const Strings rows =
        ReadAll(Dataset::Parquet(TEST_DATA "/same_rows.pq", Columns({{"name", Bytes()}})));
    LimitElementBytes(before);
    return rows.at(0);
  };
  EXPECT_THAT(
      error(256),
      HasSubstr("same_rows.pq: the memory for reading its footer exceeds the limit of 256"));
  EXPECT_THAT(
      error(20000),
      HasSubstr("same_rows.pq: the memory for reading row group 0 exceeds the limit of 20000"));
}

TEST_F(ParquetTest, ACutOrAFaultIsNamed) {
  std::ifstream in(kTable, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  const Spec spec = Columns({{"id", Scalar(kInt64)}});
  FakeFiles files;
  for (const size_t size : {size_t{0}, size_t{3}, whole.size() / 2, whole.size() - 1}) {
    files.Put("cut", whole.substr(0, size));
    EXPECT_THAT(ReadAll(Dataset::Parquet("cut", spec), {.files = &files}),
                ElementsAre(StartsWith("error: Parquet#0: cut: ")));
  }
  files.Put("gone", whole);
  files.FailFrom("gone", 0, absl::UnavailableError("the disk is gone"));
  EXPECT_THAT(ReadAll(Dataset::Parquet("gone", spec), {.files = &files}),
              ElementsAre(HasSubstr("the disk is gone")));
}

}  // namespace
}  // namespace penstock
