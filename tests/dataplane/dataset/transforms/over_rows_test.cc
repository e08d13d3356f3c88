// SPDX-License-Identifier: Apache-2.0
// A function that runs over many rows at once gives the same results as row by row. The same
// datasets are read both ways (a Map with two calls at a time goes row by row).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/transforms/batch/map_batch.h"
#include "dataplane/dataset/transforms/batch/map_over_rows.h"
#include "tests/dataplane/dataset/transforms/text_of.h"

namespace penstock {
namespace {

bool GoesOver(const Dataset& batched) {
  EXPECT_TRUE(batched.status().ok()) << batched.status();
  return IsMapBatch(*NodeOf(batched)) && GoesOverRows(*NodeOf(batched));
}

// Elements of a scalar, a vector and a matrix that differ from row to row.
Dataset Rows(int64_t count) {
  return Dataset::Range(count).Map([](auto n) {
    const Expr x = Cast(n, kFloat32);
    return Struct({{"n", n},
                   {"v", Stack({x, x * 2, x - 3})},
                   {"m", Reshape(Stack({x, x + 1, x + 2, x, x * x, Sqrt(x)}), {2, 3})}});
  });
}

// Expects that the function goes over these rows at once, and gives the same results row by row.
void ExpectSame(const Dataset& rows, const MapFunction& fn) {
  const Dataset over = rows.Map(fn).Batch(7);
  const Dataset by_row = rows.Map(fn, {.num_parallel_calls = 2}).Batch(7);
  EXPECT_TRUE(GoesOver(over));
  EXPECT_FALSE(GoesOver(by_row));
  EXPECT_EQ(ReadAll(over), ReadAll(by_row));
}

TEST(OverRows, GivesTheSameAsRowByRow) {
  const Dataset rows = Rows(40);
  ExpectSame(rows, [](auto x) { return x; });
  ExpectSame(rows, [](auto x) { return x["v"]; });
  ExpectSame(rows, [](auto x) { return x["n"] * 3 + 1; });
  // Shapes are broadcast: rows with each other, and with values that are no rows.
  ExpectSame(rows, [](auto x) { return x["m"] * x["v"] + Cast(x["n"], kFloat32); });
  ExpectSame(rows, [](auto x) { return Where(x["n"] % 2 == 0, x["v"], x["m"]); });
  ExpectSame(rows, [](auto x) {
    const float weights[] = {1, 2, 3};
    const int64_t dims[] = {3};
    return Tanh(x["v"] - Expr::Constant(Tensor(kFloat32, dims, weights))) < 0.5f;
  });
  ExpectSame(rows, [](auto x) { return OneHot(x["n"] % 5, 4); });
  ExpectSame(rows, [](auto x) {
    return Tuple({ExpandDims(x["v"], 0) + Reshape(x["m"], {2, 1, 3}), Cast(x["m"], kInt8),
                  Squeeze(Reshape(x["n"], {1, 1})), ~x["n"] << 2});
  });
}

TEST(OverRows, OtherFunctionsGoRowByRow) {
  const Dataset rows = Rows(5);
  const MapFunction row_by_row[] = {
      [](auto x) { return ReduceSum(x["v"]); },
      [](auto x) { return x["v"][0]; },
      [](auto x) {
        return Tuple({x["n"], Expr(1.0f)});
      },  // this result is not made from a row
      [](auto x) { return Cast(x["n"], kFloat32) + RandomUniform({}); },
  };
  for (const MapFunction& fn : row_by_row) EXPECT_FALSE(GoesOver(rows.Map(fn).Batch(2)));
  // Rows so large that the cost of a call for each does not matter.
  const std::vector<float> values(400);
  const int64_t dims[] = {2, 200};
  EXPECT_FALSE(GoesOver(
      Dataset::FromTensorSlices({Tensor(kFloat32, dims, values.data())}, Dense(kFloat32, {2, 200}))
          .Map([](auto x) { return x * 2; })
          .Batch(2)));
  EXPECT_FALSE(GoesOver(Dataset::FromTensorSlices<std::string>({"a", "b"})
                            .Map([](auto x) { return StringLength(x); })
                            .Batch(2)));
}

TEST(OverRows, AnErrorStandsAtItsRowAndItsBatch) {
  const Dataset rows = Dataset::Range(40);
  const auto divide = [](auto n) { return 100 / (n % 11 - 9); };
  ExpectSame(rows, divide);
  const std::vector<std::string> texts = ReadAll(rows.Map(divide).Batch(7));
  ASSERT_EQ(texts.size(), 6u);
  EXPECT_THAT(texts[1], testing::AllOf(testing::HasSubstr("Divide: integer division by zero"),
                                       testing::HasSubstr("in Map#1, element 9"),
                                       testing::HasSubstr("row 2 of a batch")));
}

TEST(OverRows, InputErrorsPassThrough) {
  const Dataset rows =
      Dataset::Range(40).Map([](auto n) { return ReduceSum(Reshape(60 / (n % 13 - 5), {1})); });
  ExpectSame(rows, [](auto n) { return 8 / (n - 12); });
}

TEST(OverRows, RemaindersAndLargeBatches) {
  for (int64_t size : {1, 39, 40, 41, 5000}) {
    for (bool drop : {false, true}) {
      const auto read = [&](int64_t calls) {
        return ReadAll(Dataset::Range(8000)
                           .Map([](auto n) { return n * n; }, {.num_parallel_calls = calls})
                           .Batch(size, {.drop_remainder = drop})
                           .Take(3));
      };
      EXPECT_EQ(read(1), read(2)) << size << " " << drop;
    }
  }
}

}  // namespace
}  // namespace penstock
