// SPDX-License-Identifier: Apache-2.0
// PaddedBatch, Unbatch, Rebatch on small pipelines, with expected results written by hand. The
// behaviour is that of tf.data's nodes of these names unless a comment says otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dataplane/dataset/transforms/batch/map_batch.h"
#include "tests/dataplane/dataset/transforms/text_of.h"
#include "tests/dataplane/dataset/transforms/vectors.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Vectors and their lengths.
Dataset Named(std::vector<int64_t> lengths) {
  return Vectors(std::move(lengths)).Map([](Expr x) {
    return Struct({{"x", x}, {"n", Cast(ShapeOf(x)[0], kFloat32)}});
  });
}
Dataset Words() {
  return Dataset::FromTensorSlices<std::string>({"a", "bb", "ccc", "d", "e"})
      .Concatenate(Dataset::FromTensorSlices<std::string>({"f"}))
      .Batch(4);
}

TEST(PaddedBatch, PadsToTheLongestOfTheBatch) {
  const Dataset dataset = Vectors({1, 2, 3, 4}).PaddedBatch(2);
  EXPECT_EQ(dataset.element_spec(), Spec(Dense(kInt64, Shape({kAny, kAny}))));
  EXPECT_THAT(ReadAll(dataset), ElementsAre("[[1, 0], [1, 2]]", "[[1, 2, 3, 0], [1, 2, 3, 4]]"));
}

TEST(PaddedBatch, PadsToTheShapeGiven) {
  const Dataset dataset = Vectors({1, 3, 2}).PaddedBatch(
      2, {.padded_shapes = {{"", Shape({4})}}, .padding_values = {{"", -1}}});
  EXPECT_EQ(dataset.element_spec(), Spec(Dense(kInt64, Shape({kAny, 4}))));
  EXPECT_THAT(ReadAll(dataset),
              ElementsAre("[[1, -1, -1, -1], [1, 2, 3, -1]]", "[[1, 2, -1, -1]]"));
}

TEST(PaddedBatch, KnowsItsShapeWithoutARemainder) {
  const Dataset dataset = Vectors({1, 3, 2}).PaddedBatch(
      2, {.padded_shapes = {{"", Shape({4})}}, .drop_remainder = true});
  EXPECT_EQ(dataset.element_spec(), Spec(Dense(kInt64, Shape({2, 4}))));
  EXPECT_THAT(ReadAll(dataset), ElementsAre("[[1, 0, 0, 0], [1, 2, 3, 0]]"));
}

TEST(PaddedBatch, PadsEachComponentByItself) {
  const Dataset dataset = Named({1, 2}).PaddedBatch(
      2, {.padded_shapes = {{"x", Shape({3})}}, .padding_values = {{"x", 7}}});
  EXPECT_THAT(ReadAll(dataset), ElementsAre("{n: [1, 2], x: [[1, 7, 7], [1, 2, 7]]}"));
}

TEST(PaddedBatch, PadsInnerDimensionsToo) {
  const auto squares = [](int64_t rows, int64_t columns) {
    return Vectors({rows * columns}).Map([=](Expr x) { return Reshape(x, {rows, columns}); });
  };
  const Dataset dataset = squares(2, 1).Concatenate(squares(1, 2));
  EXPECT_EQ(dataset.element_spec(), Spec(Dense(kInt64, Shape({kAny, kAny}))));
  const std::string padded = "[[[1, 9], [2, 9]], [[1, 2], [9, 9]]]";
  EXPECT_THAT(ReadAll(dataset.PaddedBatch(2, {.padding_values = {{"", 9}}})), ElementsAre(padded));
  // The result is the same when rows are written in place.
  EXPECT_THAT(ReadAll(dataset.PaddedBatch(
                  2, {.padded_shapes = {{"", Shape({2, 2})}}, .padding_values = {{"", 9}}})),
              ElementsAre(padded));
}

TEST(PaddedBatch, PadsRowsThatAFunctionWritesInPlace) {
  const Dataset dataset =
      Dataset::Range(1, 4)
          .Map([](Expr x) { return Cast(OneHot(x, 4) * 2, kInt32); })
          .PaddedBatch(3, {.padded_shapes = {{"", Shape({6})}}, .padding_values = {{"", -5}}});
  EXPECT_THAT(ReadAll(dataset), ElementsAre("[[0, 2, 0, 0, -5, -5], [0, 0, 2, 0, -5, -5], "
                                            "[0, 0, 0, 2, -5, -5]]"));
  // These rows are not contiguous in the result.
  const Dataset squares =
      Dataset::Range(1, 2)
          .Map([](Expr x) {
            return Reshape(OneHot(x, 4), {2, 2}) * 2.0f;
          })
          .PaddedBatch(3, {.padded_shapes = {{"", Shape({3, 3})}}, .padding_values = {{"", 9}}});
  EXPECT_THAT(ReadAll(squares), ElementsAre("[[[0, 2, 9], [0, 0, 9], [9, 9, 9]]]"));
}

TEST(PaddedBatch, IsTheSameAfterAMapThatWritesIntoItsRows) {
  const PaddedBatchOptions options = {.padded_shapes = {{"x", Shape({4})}},
                                      .padding_values = {{"x", -1}}};
  for (const int64_t calls : {kAutotune, int64_t{3}}) {
    const Dataset mapped = Named({1, 4, 0, 2, 3, 1, 4})
                               .Map(
                                   [](Expr e) {
                                     return Struct({{"x", e["x"] * 3}});
                                   },
                                   {.num_parallel_calls = calls});
    const Dataset in_place = mapped.PaddedBatch(3, options);
    const Dataset copied = mapped.Prefetch(1).PaddedBatch(3, options);
    EXPECT_TRUE(IsMapBatch(*NodeOf(in_place)));
    EXPECT_FALSE(IsMapBatch(*NodeOf(copied)));
    EXPECT_EQ(ReadAll(in_place), ReadAll(copied));
    EXPECT_THAT(in_place.Explain(), HasSubstr("each result into its row of the block of Padded"));
  }
}

TEST(PaddedBatch, PadsStringsWithEmptyOnesByDefault) {
  EXPECT_THAT(ReadAll(Words().PaddedBatch(2)), ElementsAre("[[a, bb, ccc, d], [e, f, , ]]"));
  EXPECT_THAT(ReadAll(Words().PaddedBatch(
                  2, {.padded_shapes = {{"", Shape({5})}}, .padding_values = {{"", "-"}}})),
              ElementsAre("[[a, bb, ccc, d, -], [e, f, -, -, -]]"));
}

TEST(PaddedBatch, PadsEmptyRows) {
  EXPECT_THAT(
      ReadAll(Vectors({3, 1}).Map([](Expr x) { return Slice(x, {1}, {-1}); }).PaddedBatch(2)),
      ElementsAre("[[2, 3], [0, 0]]"));
}

TEST(PaddedBatch, TakesScalarsAsTheyAre) {
  EXPECT_THAT(ReadAll(Dataset::Range(3).PaddedBatch(2)), ElementsAre("[0, 1]", "[2]"));
}

TEST(PaddedBatch, AnElementThatIsTooLongIsAnErrorOfItsBatch) {
  const std::string why = "x has shape [4], which does not fit the padded shape [3]";
  const PaddedBatchOptions to_three = {.padded_shapes = {{"x", Shape({3})}}};
  const std::vector<std::string> all = ReadAll(Named({1, 4, 2, 3}).PaddedBatch(2, to_three));
  ASSERT_EQ(all.size(), 2);
  EXPECT_THAT(all[0], AllOf(HasSubstr(why), HasSubstr("row 1 of a batch; in PaddedBatch#")));
  EXPECT_EQ(all[1], "{n: [2, 3], x: [[1, 2, 0], [1, 2, 3]]}");
  // The result is the same when rows are held until all are there.
  const std::vector<std::string> kept = ReadAll(Named({1, 4, 2, 3})
                                                    .Map([](Expr e) {
                                                      return Struct({{"x", e["x"]}, {"y", e["x"]}});
                                                    })
                                                    .PaddedBatch(2, to_three));
  ASSERT_EQ(kept.size(), 2);
  EXPECT_THAT(kept[0], HasSubstr("x: has shape [4], which does not fit the padded shape [3]; "
                                 "row 1 of a batch; in PaddedBatch#"));
}

TEST(PaddedBatch, RefusesOptionsThatDoNotFit) {
  const Dataset named = Named({1, 2});
  EXPECT_THAT(Mistake(named.PaddedBatch(0)), HasSubstr("batch_size must be at least 1"));
  EXPECT_THAT(Mistake(named.PaddedBatch(2, {.padded_shapes = {{"z", Shape({3})}}})),
              HasSubstr("padded_shapes names \"z\", which is not a component of the element; the "
                        "components are \"n\", \"x\""));
  EXPECT_THAT(Mistake(named.PaddedBatch(2, {.padded_shapes = {{"x", Shape({3, 3})}}})),
              HasSubstr("padded_shapes has [3,3] for x, whose shape is [?]: the ranks differ"));
  EXPECT_THAT(Mistake(named.PaddedBatch(2, {.padding_values = {{"x", 0.5}}})),
              HasSubstr("padding_values has 0.5 for x, which does not fit int64"));
  EXPECT_THAT(Mistake(named.PaddedBatch(2, {.padding_values = {{"n", "?"}}})),
              HasSubstr("padding_values has \"?\" for n, which does not fit float32"));
  EXPECT_THAT(
      Mistake(Dataset::Range(9)
                  .Batch(3, {.drop_remainder = true})
                  .PaddedBatch(2, {.padded_shapes = {{"", Shape({2})}}})),
      HasSubstr(
          "padded_shapes has [2] for the element, whose shape is [3]: the component is larger"));
  EXPECT_THAT(Mistake(Vectors({1}).RaggedBatch(2).PaddedBatch(2)),
              HasSubstr("only dense tensors of known rank can be padded"));
  EXPECT_THAT(Mistake(Dataset::Range(3)
                          .Map([](Expr x) { return Cast(x, kUInt8); })
                          .PaddedBatch(2, {.padding_values = {{"", 256}}})),
              HasSubstr("which does not fit uint8"));
}

TEST(Unbatch, GivesTheRowsOneAfterTheOther) {
  EXPECT_THAT(ReadAll(Dataset::Range(5).Batch(3).Unbatch()), ElementsAre("0", "1", "2", "3", "4"));
  EXPECT_EQ(Dataset::Range(5).Batch(3).Unbatch().element_spec(), Dataset::Range(5).element_spec());
  EXPECT_THAT(ReadAll(Words().Unbatch()), ElementsAre("a", "bb", "ccc", "d", "e", "f"));
}

TEST(Unbatch, KeepsComponentsTogether) {
  const Dataset pairs = Dataset::Range(3).Map([](Expr x) {
    return Struct({{"x", x}, {"twice", Tuple({x * 2, OneHot(x, 2, kInt64)})}});
  });
  EXPECT_EQ(ReadAll(pairs.Batch(2).Unbatch()), ReadAll(pairs));
}

TEST(Unbatch, KnowsHowManyRowsThereAre) {
  EXPECT_EQ(Dataset::Range(7).Batch(3, {.drop_remainder = true}).Unbatch().cardinality(), 6);
  EXPECT_EQ(Dataset::Range(7).Batch(3).Unbatch().cardinality(), kUnknown);
  EXPECT_EQ(Dataset::Range(7).Batch(3, {.drop_remainder = true}).Repeat().Unbatch().cardinality(),
            kInfinite);
}

TEST(Unbatch, TakesALevelOffRaggedTensors) {
  const Dataset once = Vectors({1, 3, 2}).RaggedBatch(2);
  EXPECT_EQ(once.Unbatch().element_spec(), Spec(Dense(kInt64, Shape({kAny}))));
  EXPECT_THAT(ReadAll(once.Unbatch()), ElementsAre("[1]", "[1, 2, 3]", "[1, 2]"));
  EXPECT_EQ(ReadAll(once.RaggedBatch(2).Unbatch()), ReadAll(once));
}

TEST(Unbatch, TakesSparseTensorsApart) {
  // Rows {0: 5, 2: 6}, {} and {1: 7} of width 4.
  const int64_t values[] = {5, 6, 7}, dims[] = {3}, shape[] = {3, 4};
  const int64_t indices[] = {0, 0, 0, 2, 2, 1};
  Tensor sparse(kInt64, dims, values);
  sparse.SetSparse(indices, shape);
  const Dataset whole = Dataset::FromTensors({sparse}, Sparse(kInt64, Shape({3, 4})));
  const Dataset rows = whole.Unbatch();
  EXPECT_EQ(rows.element_spec(), Spec(Sparse(kInt64, Shape({4}))));
  EXPECT_EQ(rows.cardinality(), 3);
  EXPECT_THAT(ReadAll(rows), ElementsAre("[5, 6]", "[]", "[7]"));
  for (const Dataset& again : {rows.Batch(3), rows.Batch(1).Rebatch(3)}) {
    for (absl::StatusOr<Element>& element : again.Elements()) {
      ASSERT_TRUE(element.ok()) << element.status();
      EXPECT_THAT(element->tensor(0).indices(), ::testing::ElementsAreArray(indices));
      EXPECT_THAT(element->tensor(0).dense_shape(), ElementsAre(3, 4));
    }
  }
}

TEST(Unbatch, RefusesElementsWithoutRows) {
  EXPECT_THAT(Mistake(Dataset::Range(3).Unbatch()),
              HasSubstr("Unbatch#1: the element is TensorSpec([], int64), which has no rows"));
}

TEST(Unbatch, ComponentsOfDifferentLengthAreAnErrorInPlace) {
  const Dataset dataset = Vectors({2, 3}).Map([](Expr x) {
    return Struct({{"all", x}, {"two", Slice(x, {0}, {2})}});
  });
  const std::vector<std::string> all = ReadAll(dataset.Unbatch());
  ASSERT_EQ(all.size(), 3);
  EXPECT_EQ(all[1], "{all: 2, two: 2}");
  EXPECT_THAT(all[2], AllOf(HasSubstr("two has 2 rows, but all has 3"), HasSubstr("element 1")));
}

TEST(Unbatch, TheErrorOfABatchStandsForItsRows) {
  const std::vector<std::string> all = ReadAll(Vectors({2, 2, 3, 1, 2, 2}).Batch(2).Unbatch());
  ASSERT_EQ(all.size(), 5);
  EXPECT_EQ(all[1], "[1, 2]");
  EXPECT_THAT(all[2], HasSubstr("row 1 of a batch has shape [1]"));
  EXPECT_EQ(all[4], "[1, 2]");
}

TEST(Rebatch, CutsAndJoins) {
  EXPECT_THAT(ReadAll(Dataset::Range(6).Batch(2).Rebatch(3)),
              ElementsAre("[0, 1, 2]", "[3, 4, 5]"));
  EXPECT_THAT(ReadAll(Dataset::Range(7).Batch(3).Rebatch(2)),
              ElementsAre("[0, 1]", "[2, 3]", "[4, 5]", "[6]"));
  EXPECT_THAT(ReadAll(Dataset::Range(7).Batch(3).Rebatch(2, {.drop_remainder = true})),
              ElementsAre("[0, 1]", "[2, 3]", "[4, 5]"));
  EXPECT_THAT(ReadAll(Words().Rebatch(5)), ElementsAre("[a, bb, ccc, d, e]", "[f]"));
}

TEST(Rebatch, IsUnbatchAndBatch) {
  const Dataset batches = Named({1, 2, 1, 2, 3}).RaggedBatch(2);
  EXPECT_EQ(ReadAll(batches.Rebatch(3)), ReadAll(batches.Unbatch().RaggedBatch(3)));
  EXPECT_EQ(batches.Rebatch(3).element_spec(), batches.Unbatch().RaggedBatch(3).element_spec());
}

TEST(Rebatch, TakesSizesInTurns) {
  EXPECT_THAT(ReadAll(Dataset::Range(7).Batch(4).Rebatch({2, 1, 1})),
              ElementsAre("[0, 1]", "[2]", "[3]", "[4, 5]", "[6]"));
}

TEST(Rebatch, GivesEmptyBatchesOnRequest) {
  const Dataset dataset = Dataset::Range(4).Batch(4).Rebatch({2, 0});
  EXPECT_THAT(ReadAll(dataset), ElementsAre("[0, 1]", "[]", "[2, 3]", "[]"));
  const Dataset ragged = Vectors({1, 2, 3}).RaggedBatch(2).RaggedBatch(2).Rebatch({1, 0});
  EXPECT_THAT(ReadAll(ragged), ElementsAre("[[[1], [1, 2]]]", "[]", "[[[1, 2, 3]]]", "[]"));
  EXPECT_THAT(ReadAll(Words().Rebatch({6, 0})), ElementsAre("[a, bb, ccc, d, e, f]", "[]"));
}

TEST(Rebatch, KnowsWhatComes) {
  const Dataset sixes = Dataset::Range(14).Batch(6, {.drop_remainder = true});
  EXPECT_EQ(sixes.Rebatch(5).cardinality(), 3);
  EXPECT_EQ(sixes.Rebatch(5, {.drop_remainder = true}).cardinality(), 2);
  EXPECT_EQ(sixes.Rebatch({0, 5}).cardinality(), 6);
  EXPECT_EQ(sixes.Rebatch(5).element_spec(), Spec(Dense(kInt64, Shape({kAny}))));
  EXPECT_EQ(sixes.Rebatch(6, {.drop_remainder = true}).element_spec(),
            Spec(Dense(kInt64, Shape({6}))));
}

TEST(Rebatch, AnErrorStandsWhereItComesAndRowsAroundItJoin) {
  const std::vector<std::string> all = ReadAll(Vectors({2, 2, 3, 1, 2, 2}).Batch(2).Rebatch(3));
  ASSERT_EQ(all.size(), 3);
  EXPECT_THAT(all[0], HasSubstr("row 1 of a batch has shape [1]"));
  EXPECT_EQ(all[1], "[[1, 2], [1, 2], [1, 2]]");
  EXPECT_EQ(all[2], "[[1, 2]]");
}

TEST(Rebatch, RowsOfDifferentShapesAreAnErrorOfTheirBatch) {
  const std::vector<std::string> all = ReadAll(Vectors({2, 3, 2, 2}).Batch(1).Rebatch(2));
  ASSERT_EQ(all.size(), 2);
  EXPECT_THAT(all[0],
              HasSubstr("rows of shapes [2] and [3] do not fit into one batch; in Rebatch#"));
  EXPECT_EQ(all[1], "[[1, 2], [1, 2]]");
}

TEST(Rebatch, RefusesSizesThatGiveNothing) {
  const Dataset batches = Dataset::Range(4).Batch(2);
  EXPECT_THAT(Mistake(batches.Rebatch(0)), HasSubstr("Rebatch#2: batch_size must be at least 1"));
  EXPECT_THAT(Mistake(batches.Rebatch({3, -1})), HasSubstr("batch_size must be at least 1"));
  EXPECT_THAT(Mistake(batches.Rebatch(std::vector<int64_t>())), HasSubstr("batch_size must be"));
  EXPECT_THAT(Mistake(Dataset::Range(4).Rebatch(2)), HasSubstr("which has no rows"));
}

}  // namespace
}  // namespace penstock
