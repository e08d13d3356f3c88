// SPDX-License-Identifier: Apache-2.0
// BucketBySequenceLength, Window, GroupByWindow and Pack on small pipelines, with expected results
// written by hand. The first three behave like tf.data's nodes of these names unless a comment says
// otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/dataset/graph/graph.h"
#include "include/status_macros.h"
#include "penstock/register.h"
#include "tests/dataplane/dataset/transforms/of_the_moment.h"
#include "tests/dataplane/dataset/transforms/text_of.h"
#include "tests/dataplane/dataset/transforms/vectors.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns x and counts the calls.
std::atomic<int64_t> times_asked = 0;
absl::Status CountCall(CallContext& call) {
  ++times_asked;
  ASSIGN_OR_RETURN(absl::Span<int64_t> out, call.OutputAs<int64_t>(0, {}));
  out[0] = call.inputs()[0].scalar<int64_t>();
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("windows.counted", 1, Scalar(kInt64), CountCall);

Dataset CountedRange(int64_t stop) {
  return Dataset::Range(stop).Map([](Expr x) { return Call("windows.counted", x); },
                                  {.num_parallel_calls = 1});
}
// Returns how many elements of CountedRange are made again when reading is restored after
// `elements` elements of a dataset.
int64_t MadeAgain(const Dataset& dataset, int64_t elements) {
  const RunContext context;
  std::unique_ptr<NodeIterator> first = BuildIterator(dataset, context).value();
  EXPECT_EQ(first->Skip(elements).value(), elements);
  const std::string position = SaveIterator(*first, dataset).value();
  std::unique_ptr<NodeIterator> second = BuildIterator(dataset, context).value();
  times_asked = 0;
  EXPECT_TRUE(RestoreIterator(*second, dataset, position).ok());
  return times_asked;
}

Expr Length(const Expr& x) {
  return ShapeOf(x)[0];
}
// A dict with the vectors as the feature "t".
Dataset Tokens(std::vector<int64_t> lengths) {
  return Vectors(std::move(lengths)).Map([](Expr x) { return Struct({{"t", x}}); });
}
// Writes packed rows of one feature.
std::string Row(const std::string& values, const std::string& ids, const std::string& positions) {
  return "{t: [" + values + "], t_positions: [" + positions + "], t_segment_ids: [" + ids + "]}";
}

TEST(BucketBySequenceLength, IsTheDocumentedExample) {
  // Buckets [0, 3), [3, 5) and [5, …), two elements each.
  const Dataset dataset =
      Vectors({1, 4, 3, 5, 6, 2}).BucketBySequenceLength(Length, {3, 5}, {2, 2, 2});
  EXPECT_EQ(dataset.element_spec(), Spec(Dense(kInt64, Shape({kAny, kAny}))));
  EXPECT_THAT(ReadAll(dataset),
              ElementsAre("[[1, 2, 3, 4], [1, 2, 3, 0]]",
                          "[[1, 2, 3, 4, 5, 0], [1, 2, 3, 4, 5, 6]]", "[[1, 0], [1, 2]]"));
}

TEST(BucketBySequenceLength, PadsToTheBucketsBoundary) {
  // tf.data's second example: buckets of lengths up to 3 and up to 6; the remainders at the end
  // come by bucket.
  const Dataset dataset =
      Vectors({1, 4, 3, 5, 6, 2})
          .BucketBySequenceLength(Length, {4, 7}, {2, 2, 2},
                                  {.padding_values = {{"", -1}}, .pad_to_bucket_boundary = true});
  EXPECT_THAT(ReadAll(dataset),
              ElementsAre("[[1, -1, -1], [1, 2, 3]]", "[[1, 2, 3, 4, -1, -1], [1, 2, 3, 4, 5, -1]]",
                          "[[1, 2, -1]]", "[[1, 2, 3, 4, 5, 6]]"));
}

TEST(BucketBySequenceLength, LongerThanThePaddedBoundaryIsAnErrorInPlace) {
  const std::vector<std::string> all = ReadAll(Vectors({1, 9, 3}).BucketBySequenceLength(
      Length, {4, 7}, {2, 2, 2}, {.pad_to_bucket_boundary = true}));
  ASSERT_EQ(all.size(), 2);
  EXPECT_THAT(all[0], AllOf(HasSubstr("element_length returned 9"), HasSubstr("below 7"),
                            HasSubstr("element 1")));
  EXPECT_EQ(all[1], "[[1, 0, 0], [1, 2, 3]]");
}

TEST(BucketBySequenceLength, DropsRemaindersOnRequest) {
  const Dataset dataset = Vectors({1, 4, 1}).BucketBySequenceLength(
      Length, {3}, {2, 2}, {.padded_shapes = {{"", Shape({4})}}, .drop_remainder = true});
  EXPECT_EQ(dataset.element_spec(), Spec(Dense(kInt64, Shape({2, 4}))));
  EXPECT_THAT(ReadAll(dataset), ElementsAre("[[1, 0, 0, 0], [1, 0, 0, 0]]"));
}

TEST(BucketBySequenceLength, WithoutPaddingIsRagged) {
  // tf.data requires sparse tensors or equal shapes here.
  const Dataset dataset =
      Vectors({1, 2, 5}).BucketBySequenceLength(Length, {3}, {2, 2}, {.no_padding = true});
  EXPECT_EQ(dataset.element_spec(), Spec(Ragged(kInt64, Shape({kAny, kAny}), 1)));
  EXPECT_THAT(ReadAll(dataset), ElementsAre("[[1], [1, 2]]", "[[1, 2, 3, 4, 5]]"));
}

TEST(BucketBySequenceLength, SendsShortBatchesOnceElementsAreTooOld) {
  // Penstock only. The long one waits while three short ones fill their bucket.
  const Dataset dataset =
      Vectors({5, 1, 1, 1, 1, 1, 5}).BucketBySequenceLength(Length, {3}, {3, 2}, {.max_age = 2});
  EXPECT_THAT(ReadAll(dataset), ElementsAre("[[1], [1], [1]]", "[[1, 2, 3, 4, 5]]", "[[1], [1]]",
                                            "[[1, 2, 3, 4, 5]]"));
}

TEST(BucketBySequenceLength, SaysHowFarBackItRestores) {
  const Dataset vectors = Vectors({1});
  EXPECT_THAT(vectors.BucketBySequenceLength(Length, {3}, {3, 2}, {.max_age = 500}).Explain(),
              HasSubstr("| restores from the oldest element waiting, reading at most 1000 inputs"));
  EXPECT_THAT(vectors.BucketBySequenceLength(Length, {3}, {3, 2}).Explain(),
              HasSubstr("| restores from the oldest element waiting, however far back"));
}

TEST(BucketBySequenceLength, RestoreMakesWaitingElementsAgain) {
  // Every 50th element waits in a bucket of its own; with max_age = 30 it is sent on before the
  // bucket is full.
  const Dataset range = CountedRange(10000);
  const auto length = [](Expr x) { return Where(x % 50 == 0, x * 0 + 9, x % 5); };
  const Dataset forever = range.BucketBySequenceLength(length, {6}, {7, 1000});
  EXPECT_GE(MadeAgain(forever, 500), 500 * 7 / 50);
  const Dataset bounded = range.BucketBySequenceLength(length, {6}, {7, 1000}, {.max_age = 30});
  EXPECT_LE(MadeAgain(bounded, 500), 31);
}

TEST(BucketBySequenceLength, RefusesArgumentsThatDoNotFit) {
  const Dataset some = Vectors({1, 2});
  EXPECT_THAT(Mistake(some.BucketBySequenceLength(Length, {}, {2})),
              HasSubstr("bucket_boundaries must have at least one"));
  EXPECT_THAT(
      Mistake(some.BucketBySequenceLength(Length, {3, 3}, {2, 2, 2})),
      HasSubstr("bucket_boundaries must be 1 or more and strictly ascending, but number 1 is 3"));
  EXPECT_THAT(Mistake(some.BucketBySequenceLength(Length, {3}, {2})),
              HasSubstr("bucket_batch_sizes must have one more size than there are boundaries, 2"));
  EXPECT_THAT(Mistake(some.BucketBySequenceLength(Length, {3}, {2, 0})),
              HasSubstr("bucket_batch_sizes must be at least 1"));
  EXPECT_THAT(Mistake(some.BucketBySequenceLength(Length, {3}, {2, 2}, {.max_age = -1})),
              HasSubstr("max_age must be 0 or more"));
  EXPECT_THAT(Mistake(some.BucketBySequenceLength(Length, {3}, {2, 2},
                                                  {.drop_remainder = true, .max_age = 5})),
              HasSubstr("max_age emits partial batches"));
  EXPECT_THAT(Mistake(some.BucketBySequenceLength(
                  Length, {3}, {2, 2}, {.padding_values = {{"", 1}}, .no_padding = true})),
              HasSubstr("no_padding excludes padded_shapes"));
  EXPECT_THAT(Mistake(some.BucketBySequenceLength([](Expr x) { return x; }, {3}, {2, 2})),
              HasSubstr("element_length must return an int32 or int64 scalar"));
}

TEST(Window, IsTheDocumentedExamples) {
  const Dataset seven = Dataset::Range(7);
  EXPECT_THAT(ReadAll(seven.Window(3).Batch()), ElementsAre("[0, 1, 2]", "[3, 4, 5]", "[6]"));
  EXPECT_THAT(ReadAll(seven.Window(3, {.drop_remainder = true}).Batch()),
              ElementsAre("[0, 1, 2]", "[3, 4, 5]"));
  EXPECT_THAT(ReadAll(seven.Window(3, {.shift = 1, .stride = 2, .drop_remainder = true}).Batch()),
              ElementsAre("[0, 2, 4]", "[1, 3, 5]", "[2, 4, 6]"));
}

TEST(Window, GetsShortAtTheEnd) {
  EXPECT_THAT(ReadAll(Dataset::Range(4).Window(3, {.shift = 1}).Batch()),
              ElementsAre("[0, 1, 2]", "[1, 2, 3]", "[2, 3]", "[3]"));
  EXPECT_THAT(ReadAll(Dataset::Range(5).Window(3, {.shift = 2, .stride = 2}).Batch()),
              ElementsAre("[0, 2, 4]", "[2, 4]", "[4]"));
}

TEST(Window, LeavesElementsOutBetweenTwo) {
  EXPECT_THAT(ReadAll(Dataset::Range(9).Window(2, {.shift = 4}).Batch()),
              ElementsAre("[0, 1]", "[4, 5]", "[8]"));
}

TEST(Window, KnowsItsShapeWithoutARemainder) {
  EXPECT_EQ(Dataset::Range(7).Window(3, {.drop_remainder = true}).Batch().element_spec(),
            Spec(Dense(kInt64, Shape({3}))));
  EXPECT_EQ(Dataset::Range(7).Window(3, {.shift = 2}).Batch().cardinality(), 4);
  EXPECT_EQ(Dataset::Range(7)
                .Window(3, {.shift = 3, .stride = 3, .drop_remainder = true})
                .Batch()
                .cardinality(),
            1);
}

TEST(Window, BecomesTheRequestedKindOfBatch) {
  const Dataset vectors = Vectors({1, 2, 3});
  EXPECT_THAT(ReadAll(vectors.Window(2).PaddedBatch({.padding_values = {{"", 9}}})),
              ElementsAre("[[1, 9], [1, 2]]", "[[1, 2, 3]]"));
  EXPECT_THAT(ReadAll(vectors.Window(2).RaggedBatch()),
              ElementsAre("[[1], [1, 2]]", "[[1, 2, 3]]"));
  EXPECT_THAT(
      ReadAll(Tokens({1, 2, 3}).Window(2).Pack(3)),
      ElementsAre("{t: [[1, 1, 2]], t_positions: [[0, 0, 1]], t_segment_ids: [[1, 2, 2]]}",
                  "{t: [[1, 2, 3]], t_positions: [[0, 1, 2]], t_segment_ids: [[1, 1, 1]]}"));
}

TEST(Window, IsADatasetInsideFlatMap) {
  const Dataset numbers =
      Dataset::Range(6).Window(3, {.shift = 2}).FlatMap([](const Dataset& window) {
        return window.Map([](Expr x) { return x * 10; }).Take(2);
      });
  EXPECT_THAT(ReadAll(numbers), ElementsAre("0", "10", "20", "30", "40", "50"));
  const Dataset vectors =
      Vectors({1, 2, 3}).Window(2, {.shift = 1}).FlatMap([](const Dataset& window) {
        return window.PaddedBatch(2);
      });
  EXPECT_THAT(ReadAll(vectors),
              ElementsAre("[[1, 0], [1, 2]]", "[[1, 2, 0], [1, 2, 3]]", "[[1, 2, 3]]"));
}

TEST(Window, ABadElementIsAnErrorOfItsWindows) {
  const Dataset some_fail =
      Vectors({2, 2, 3, 1, 2, 2}).Batch(2).Window(2, {.shift = 1}).RaggedBatch();
  const std::vector<std::string> all = ReadAll(some_fail);
  ASSERT_EQ(all.size(), 3);
  EXPECT_THAT(all[0], HasSubstr("row 1 of a batch; in Window#"));
  EXPECT_THAT(all[1], HasSubstr("row 0 of a batch; in Window#"));
  EXPECT_EQ(all[2], "[[[1, 2], [1, 2]]]");
}

TEST(Window, RefusesArgumentsThatDoNotFit) {
  const Dataset ten = Dataset::Range(10);
  EXPECT_THAT(Mistake(ten.Window(0).Batch()), HasSubstr("Window#1: size must be in [1,"));
  EXPECT_THAT(Mistake(ten.Window(2, {.shift = 0}).Batch()), HasSubstr("shift must be in [1,"));
  EXPECT_THAT(Mistake(ten.Window(2, {.stride = 0}).Batch()), HasSubstr("stride must be in [1,"));
  EXPECT_THAT(Mistake(ten.Window(int64_t{1} << 40, {.stride = int64_t{1} << 40}).Batch()),
              HasSubstr("size and stride must not span more than"));
  EXPECT_THAT(Mistake(ten.Window(2).PaddedBatch({.padded_shapes = {{"x", Shape()}}})),
              HasSubstr("Window#1: padded_shapes names \"x\""));
  EXPECT_THAT(Mistake(ten.Batch(0).Window(2).Batch()), HasSubstr("Batch#1: batch_size"));
  EXPECT_THAT(Mistake(ten.Window(0).FlatMap([](const Dataset& w) { return w; })),
              HasSubstr("Window#1: size"));
}

TEST(GroupByWindow, IsTheDocumentedExample) {
  const Dataset dataset = Dataset::Range(10).GroupByWindow([](Expr x) { return x % 2; }, 5).Batch();
  EXPECT_THAT(ReadAll(dataset), ElementsAre("[0, 2, 4, 6, 8]", "[1, 3, 5, 7, 9]"));
}

TEST(GroupByWindow, GivesRemaindersByKey) {
  const auto descending = [](Expr x) { return Cast(10 - x / 2, kInt32); };
  EXPECT_THAT(ReadAll(Dataset::Range(7).GroupByWindow(descending, 3).Batch()),
              ElementsAre("[6]", "[4, 5]", "[2, 3]", "[0, 1]"));
  EXPECT_THAT(
      ReadAll(Dataset::Range(7).GroupByWindow(descending, 3, {.drop_remainder = true}).Batch()),
      IsEmpty());
}

TEST(GroupByWindow, SendsShortWindowsOnceElementsAreTooOld) {
  EXPECT_THAT(
      ReadAll(
          Dataset::Range(6).GroupByWindow([](Expr x) { return x / 2; }, 3, {.max_age = 1}).Batch()),
      ElementsAre("[0, 1]", "[2, 3]", "[4, 5]"));
}

TEST(GroupByWindow, IsADatasetInsideFlatMap) {
  const Dataset dataset = Dataset::Range(8)
                              .GroupByWindow([](Expr x) { return x % 2; }, 4)
                              .FlatMap([](const Dataset& window) { return window.Batch(3); });
  EXPECT_THAT(ReadAll(dataset), ElementsAre("[0, 2, 4]", "[6]", "[1, 3, 5]", "[7]"));
}

TEST(GroupByWindow, RefusesArgumentsThatDoNotFit) {
  const Dataset ten = Dataset::Range(10);
  const auto same = [](Expr x) { return x; };
  EXPECT_THAT(Mistake(ten.GroupByWindow(same, 0).Batch()),
              HasSubstr("GroupByWindow#1: window_size must be at least 1"));
  EXPECT_THAT(Mistake(ten.GroupByWindow([](Expr x) { return x > 1; }, 2).Batch()),
              HasSubstr("key must return an int32 or int64 scalar"));
  EXPECT_THAT(Mistake(ten.GroupByWindow([](Expr x) { return x["a"]; }, 2).Batch()),
              HasSubstr("GroupByWindow#1: "));
  EXPECT_THAT(Mistake(ten.GroupByWindow(same, 2).Pack(3)),
              HasSubstr("GroupByWindow#1: elements must be dicts of features"));
}

TEST(Pack, PutsSequencesOneAfterTheOther) {
  const Dataset dataset = Tokens({3, 2, 4, 1}).Pack(5);
  EXPECT_EQ(dataset.element_spec(), Spec::Dict({{"t", Dense(kInt64, Shape({5}))},
                                                {"t_positions", Dense(kInt32, Shape({5}))},
                                                {"t_segment_ids", Dense(kInt32, Shape({5}))}}));
  EXPECT_THAT(ReadAll(dataset),
              ElementsAre(Row("1, 2, 3, 1, 2", "1, 1, 1, 2, 2", "0, 1, 2, 0, 1"),
                          Row("1, 2, 3, 4, 1", "1, 1, 1, 1, 2", "0, 1, 2, 3, 0")));
}

TEST(Pack, KeepsTheOrderInOneOpenRow) {
  EXPECT_THAT(ReadAll(Tokens({3, 4, 2}).Pack(5)),
              ElementsAre(Row("1, 2, 3, 0, 0", "1, 1, 1, 0, 0", "0, 1, 2, 0, 0"),
                          Row("1, 2, 3, 4, 0", "1, 1, 1, 1, 0", "0, 1, 2, 3, 0"),
                          Row("1, 2, 0, 0, 0", "1, 1, 0, 0, 0", "0, 1, 0, 0, 0")));
}

TEST(Pack, TakesTheFirstOpenRowThatHasRoom) {
  EXPECT_THAT(ReadAll(Tokens({3, 4, 2}).Pack(5, {.open_rows = 2, .padding_values = {{"t", 9}}})),
              ElementsAre(Row("1, 2, 3, 1, 2", "1, 1, 1, 2, 2", "0, 1, 2, 0, 1"),
                          Row("1, 2, 3, 4, 9", "1, 1, 1, 1, 0", "0, 1, 2, 3, 0")));
}

TEST(Pack, ARowDoesNotStayOpenWhileOthersFillAndGo) {
  // The row of 3 has no room for the lengths of 2, which fill row after row.
  const std::vector<std::string> all = ReadAll(Tokens({3, 2, 2, 2, 2}).Pack(4, {.open_rows = 2}));
  EXPECT_THAT(all, ElementsAre(Row("1, 2, 1, 2", "1, 1, 2, 2", "0, 1, 0, 1"),
                               Row("1, 2, 3, 0", "1, 1, 1, 0", "0, 1, 2, 0"),
                               Row("1, 2, 1, 2", "1, 1, 2, 2", "0, 1, 0, 1")));
}

TEST(Pack, PacksFeaturesAlike) {
  // The third element has room in "in", but not in "out".
  const Dataset dataset = Vectors({2, 1, 1}).Map([](Expr x) {
    return Struct({{"in", x}, {"out", Cast(x * 0 + 1, kInt32)}});
  });
  EXPECT_THAT(ReadAll(dataset.Pack({{"in", 4}, {"out", 3}})),
              ElementsAre("{in: [1, 2, 1, 0], in_positions: [0, 1, 0, 0], "
                          "in_segment_ids: [1, 1, 2, 0], out: [1, 1, 1], out_positions: [0, 1, 0], "
                          "out_segment_ids: [1, 1, 2]}",
                          "{in: [1, 0, 0, 0], in_positions: [0, 0, 0, 0], "
                          "in_segment_ids: [1, 0, 0, 0], out: [1, 0, 0], out_positions: [0, 0, 0], "
                          "out_segment_ids: [1, 0, 0]}"));
}

TEST(Pack, KeepsInnerDimensions) {
  const Dataset dataset = Vectors({4, 2}).Map([](Expr x) {
    return Struct({{"t", Reshape(x, {-1, 2})}});
  });
  EXPECT_THAT(ReadAll(dataset.Pack(3)),
              ElementsAre(Row("[1, 2], [3, 4], [1, 2]", "1, 1, 2", "0, 1, 0")));
}

TEST(Pack, TooLongSequencesAreErrorsInPlaceByDefault) {
  const Dataset some = Tokens({2, 9, 1});
  const std::vector<std::string> all = ReadAll(some.Pack(4));
  ASSERT_EQ(all.size(), 2);
  EXPECT_THAT(all[0], AllOf(HasSubstr("t has length 9, longer than a row of 4"),
                            HasSubstr("in Pack#"), HasSubstr("element 1")));
  EXPECT_EQ(all[1], Row("1, 2, 1, 0", "1, 1, 2, 0", "0, 1, 0, 0"));
  EXPECT_THAT(ReadAll(some.Pack(4, {.too_long = TooLong::kTruncate})),
              ElementsAre(Row("1, 2, 0, 0", "1, 1, 0, 0", "0, 1, 0, 0"),
                          Row("1, 2, 3, 4", "1, 1, 1, 1", "0, 1, 2, 3"),
                          Row("1, 0, 0, 0", "1, 0, 0, 0", "0, 0, 0, 0")));
  EXPECT_THAT(ReadAll(some.Pack(4, {.open_rows = 3, .too_long = TooLong::kSplit})),
              ElementsAre(Row("1, 2, 3, 4", "1, 1, 1, 1", "0, 1, 2, 3"),
                          Row("5, 6, 7, 8", "1, 1, 1, 1", "0, 1, 2, 3"),
                          Row("1, 2, 9, 1", "1, 1, 2, 3", "0, 1, 0, 0")));
}

TEST(Pack, SaysHowFarBackItRestores) {
  const Dataset dataset = CountedRange(10000).FlatMap([](Expr x) {
    return Dataset::Range(x % 7).Batch(7).Map([](Expr t) { return Struct({{"t", t}}); });
  });
  // The last remembered position may be up to 64 sequences earlier, and there are 16 elements of
  // the FlatMap, of which every seventh is empty.
  for (int64_t rows : {1, 20, 333})
    EXPECT_LE(MadeAgain(dataset.Pack(8, {.open_rows = 3}), rows), (40 + 64) * 7 / 6 + 16);
  EXPECT_THAT(
      Tokens({1}).Pack(8, {.open_rows = 3}).Explain(),
      HasSubstr("| restores from the oldest sequence in 3 open rows, at most 40 sequences"));
}

TEST(Pack, RefusesArgumentsThatDoNotFit) {
  const Dataset some = Tokens({1, 2});
  EXPECT_THAT(Mistake(some.Pack(0)), HasSubstr("length of t must be at least 1, not 0"));
  EXPECT_THAT(Mistake(some.Pack(4, {.open_rows = 0})), HasSubstr("open_rows must be in [1, "));
  EXPECT_THAT(Mistake(some.Pack({{"u", 4}})), HasSubstr("lengths names \"u\""));
  EXPECT_THAT(Mistake(some.Pack(PackLengths())), HasSubstr("lengths has no entry for t"));
  EXPECT_THAT(Mistake(some.Pack(4, {.padding_values = {{"t", true}}})),
              HasSubstr("padding_values has true for t, which does not fit int64"));
  EXPECT_THAT(Mistake(some.Pack(int64_t{1} << 30)), HasSubstr("rows of more than 1 GiB"));
  EXPECT_THAT(Mistake(Vectors({1}).Pack(4)), HasSubstr("elements must be dicts of features"));
  const Dataset two = some.Map([](Expr e) {
    return Struct({{"t", e["t"]}, {"t_positions", e["t"]}});
  });
  EXPECT_THAT(Mistake(two.Pack(4)), HasSubstr("has the same name as another feature's"));
  EXPECT_THAT(Mistake(two.Map([](Expr e) {
                           return Struct({{"a", e["t"]}, {"b", e["t"]}});
                         })
                          .Pack({{"a", 4}, {"b", 5}}, {.too_long = TooLong::kSplit})),
              HasSubstr("too_long = split needs the same length"));
  EXPECT_THAT(Mistake(some.Map([](Expr e) {
                            return Struct({{"n", Length(e["t"])}});
                          })
                          .Pack(4)),
              HasSubstr("n is TensorSpec([], int64); only dense sequences"));
}

TEST(Windows, OfADefinitionFromOutsideAreChecked) {
  const Dataset vectors = Vectors({1, 2});
  const auto with = [](const Dataset& good, const std::string& name, std::optional<Attr> value) {
    const Dataset::Node& node = *NodeOf(good);
    Attrs attrs = node.attrs;
    attrs.erase(name);
    if (value.has_value()) attrs[name] = *value;
    return Mistake(DatasetOf(MakeNode(node.op, attrs, node.inputs)));
  };
  const Dataset padded = vectors.Window(2).PaddedBatch();
  const Attr spec = Spec(Dense(kInt32, Shape({4}))), text = std::string("other");
  EXPECT_THAT(with(padded, "form", text), HasSubstr("form must be batch, ragged_batch"));
  EXPECT_THAT(with(padded, "form", Attr(std::string("ragged_batch"))),
              HasSubstr("padded is not allowed for windows that become a ragged_batch"));
  EXPECT_THAT(with(padded, "padded", std::nullopt),
              HasSubstr("padded is missing for windows that become a padded_batch"));
  EXPECT_THAT(with(padded, "padded", spec), HasSubstr("padded_shapes is for"));
  EXPECT_THAT(with(padded, "padding_values",
                   NodeOf(vectors.Map([](Expr x) { return Cast(x, kInt32); }).PaddedBatch(2))
                       ->attrs.at("padding_values")),
              HasSubstr("padding_values must have a scalar of int64 for the element"));
  const Dataset buckets = vectors.BucketBySequenceLength(Length, {3}, {2, 2});
  EXPECT_THAT(with(buckets, "padded", std::nullopt), HasSubstr("padded_shapes and padding_values"));
  const Dataset packed = Tokens({1}).Pack(4);
  EXPECT_THAT(with(packed, "too_long", text),
              HasSubstr("too_long must be error, truncate or split"));
  EXPECT_THAT(with(packed, "lengths", Attr(std::vector<int64_t>{4, 4})),
              HasSubstr("lengths must have 1 numbers"));
  EXPECT_THAT(with(packed, "lengths", Attr(std::vector<int64_t>{0})),
              HasSubstr("length must be in [1, "));
}

TEST(Windows, AreNotDecidedByAValueThatIsNotDeterministic) {
  ASSERT_TRUE(kOfTheMomentRegistered);
  const Dataset ten = Dataset::Range(10);
  EXPECT_THAT(Mistake(ten.GroupByWindow(OfTheMoment, 3).Batch()),
              HasSubstr("key calls a function that is registered as not deterministic"));
  EXPECT_THAT(Mistake(ten.Map(OfTheMoment).GroupByWindow([](Expr x) { return x; }, 3).Batch()),
              HasSubstr("Map#1 calls a function"));
  EXPECT_THAT(Mistake(ten.BucketBySequenceLength(OfTheMoment, {3}, {2, 2})),
              HasSubstr("element_length calls a function"));
  EXPECT_THAT(Mistake(Tokens({1}).Map(OfTheMoment).Pack(4)), HasSubstr("calls a function"));
}

}  // namespace
}  // namespace penstock
