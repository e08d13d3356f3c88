// SPDX-License-Identifier: Apache-2.0
#include "penstock/spec.h"

#include <gtest/gtest.h>

#include <limits>

namespace penstock {
namespace {

std::string MessageOf(const absl::Status& status) {
  return std::string(status.message());
}

TEST(Shape, CountsItsValues) {
  EXPECT_EQ(Shape().ElementCount(), 1);
  EXPECT_EQ((Shape{2, 3}.ElementCount()), 6);
  EXPECT_EQ((Shape{2, 0, 3}.ElementCount()), 0);
  EXPECT_EQ((Shape{kUnknownDim, 3}.ElementCount()), kUnknownDim);
  EXPECT_EQ(Shape::UnknownRank().ElementCount(), kUnknownDim);
  const int64_t huge = int64_t{1} << 40;
  EXPECT_EQ((Shape{huge, huge}.ElementCount()), std::numeric_limits<int64_t>::max());
  EXPECT_EQ((Shape{huge, huge, 0}.ElementCount()), 0);
}

TEST(Shape, AdmitsMatchingDims) {
  EXPECT_TRUE((Shape{kUnknownDim, 3}.Admits({7, 3})));
  EXPECT_FALSE((Shape{kUnknownDim, 3}.Admits({7, 4})));
  EXPECT_FALSE((Shape{3}.Admits({3, 3})));
  EXPECT_TRUE(Shape::UnknownRank().Admits({1, 2, 3}));
  EXPECT_TRUE(Shape().Admits({}));
}

TEST(Shape, MostGeneralAdmitsBoth) {
  EXPECT_EQ((Shape{2, 3}.MostGeneral(Shape{4, 3})), (Shape{kUnknownDim, 3}));
  EXPECT_EQ((Shape{2, 3}.MostGeneral(Shape{2, 3})), (Shape{2, 3}));
  EXPECT_EQ((Shape{2, 3}.MostGeneral(Shape{2})), Shape::UnknownRank());
  EXPECT_EQ(Shape::UnknownRank().MostGeneral(Shape{2}), Shape::UnknownRank());
}

TEST(Shape, TakesALeadingDimension) {
  EXPECT_EQ((Shape{3}.WithLeading(kUnknownDim)), (Shape{kUnknownDim, 3}));
  EXPECT_EQ(Shape::UnknownRank().WithLeading(2), Shape::UnknownRank());
}

TEST(Shape, PrintsUnknownDimensionsAsQuestionMarks) {
  EXPECT_EQ((Shape{kUnknownDim, 224, 3}.ToString()), "[?,224,3]");
  EXPECT_EQ(Shape().ToString(), "[]");
  EXPECT_EQ(Shape::UnknownRank().ToString(), "<unknown>");
}

TEST(TensorSpec, IsStaticOnlyIfAllElementsTakeTheSameBytes) {
  EXPECT_TRUE(Dense(kInt32, {2, 3}).IsStatic());
  EXPECT_FALSE(Dense(kInt32, {2, kUnknownDim}).IsStatic());
  EXPECT_FALSE(Bytes().IsStatic());
  EXPECT_FALSE(Ragged(kInt32, {2, kUnknownDim}, 1).IsStatic());
  TensorSpec optional = Scalar(kInt32);
  optional.optional = true;
  EXPECT_FALSE(optional.IsStatic());
}

TEST(Spec, PrintsAsTfDataDoes) {
  const Spec spec =
      Spec::Tuple({Dense(kFloat32, {kUnknownDim, 1}), Dense(kInt32, {kUnknownDim, 1})});
  EXPECT_EQ(spec.ToString(), "(TensorSpec([?,1], float32), TensorSpec([?,1], int32))");
}

TEST(Spec, PrintsEveryKind) {
  TensorSpec optional = Scalar(kInt32);
  optional.optional = true;
  const Spec spec = Spec::Dict({{"r", Ragged(kInt64, {kUnknownDim, kUnknownDim}, 1)},
                                {"s", Sparse(kFloat32, {3, 4})},
                                {"o", optional},
                                {"t", Spec::Tuple({Bytes()})}});
  EXPECT_EQ(spec.ToString(),
            "{o: TensorSpec([], int32, optional), r: RaggedSpec([?,?], int64, ragged_rank=1), "
            "s: SparseSpec([3,4], float32), t: (TensorSpec([], string),)}");
  EXPECT_EQ(Spec().ToString(), "()");
}

TEST(Spec, HasItsLeavesDepthFirstWithDictsByKey) {
  const Spec spec = Spec::Dict(
      {{"z", Scalar(kInt8)},
       {"a", Spec::Tuple({Scalar(kInt16), Spec::Dict({{"y", Scalar(kInt32)}, {"x", Bytes()}})})},
       {"m", Spec::Tuple({})}});
  ASSERT_EQ(spec.leaves().size(), 4u);
  EXPECT_EQ(spec.leaves()[0].dtype, kInt16);
  EXPECT_EQ(spec.leaves()[1].dtype, kString);
  EXPECT_EQ(spec.leaves()[2].dtype, kInt32);
  EXPECT_EQ(spec.leaves()[3].dtype, kInt8);
  EXPECT_EQ(spec.LeafName(0), "a[0]");
  EXPECT_EQ(spec.LeafName(1), "a[1]/x");
  EXPECT_EQ(spec.LeafName(2), "a[1]/y");
  EXPECT_EQ(spec.LeafName(3), "z");
}

TEST(Spec, NamesLeavesOfTuplesByNumberAndALoneLeafByNothing) {
  const Spec tuple = Spec::Tuple({Spec::Tuple({}), Scalar(kInt8), Spec::Dict({{"a", Bytes()}})});
  EXPECT_EQ(tuple.LeafName(0), "[1]");
  EXPECT_EQ(tuple.LeafName(1), "[2]/a");
  EXPECT_EQ(Spec(Bytes()).LeafName(0), "");
}

TEST(Spec, FindsAMemberAndItsFirstLeaf) {
  const Spec spec = Spec::Dict({{"b", Scalar(kInt8)}, {"a", Spec::Tuple({Bytes(), Bytes()})}});
  const std::optional<Spec::Found> found = spec.Find("b");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first_leaf, 2u);
  EXPECT_EQ(found->spec->leaf().dtype, kInt8);
  EXPECT_FALSE(spec.Find("c"));
  EXPECT_FALSE(Spec(Bytes()).Find("c"));
}

TEST(Spec, KeepsTheLastSpecOfAKeyGivenTwice) {
  const Spec spec = Spec::Dict({{"a", Scalar(kInt8)}, {"a", Scalar(kInt16)}});
  ASSERT_EQ(spec.size(), 1u);
  EXPECT_EQ(spec.member(0).leaf().dtype, kInt16);
}

TEST(Spec, TakesOtherLeavesInTheSameNest) {
  const Spec spec = Spec::Dict({{"b", Scalar(kInt8)}, {"a", Spec::Tuple({Bytes(), Bytes()})}});
  const Spec other = spec.WithLeaves({Scalar(kInt16), Scalar(kInt32), Scalar(kInt64)});
  EXPECT_EQ(other, Spec::Dict({{"a", Spec::Tuple({Scalar(kInt16), Scalar(kInt32)})},
                               {"b", Scalar(kInt64)}}));
}

TEST(Spec, ThatWasMovedFromIsTheEmptyTuple) {
  Spec spec = Bytes();
  const Spec taken = std::move(spec);
  EXPECT_EQ(spec, Spec());  // NOLINT: what it is, is the point
  EXPECT_EQ(Spec(), Spec::Tuple({}));
  EXPECT_EQ(taken, Spec(Bytes()));
}

TEST(SpecAdmits, WiderShapesAndOptionalLeaves) {
  TensorSpec optional = Dense(kInt32, {kUnknownDim});
  optional.optional = true;
  EXPECT_TRUE(Spec(optional).Admits(Dense(kInt32, {3})).ok());
  EXPECT_TRUE(Spec(Dense(kInt32, Shape::UnknownRank())).Admits(Dense(kInt32, {3, 4})).ok());
  EXPECT_FALSE(Spec(Dense(kInt32, {3})).Admits(Dense(kInt32, {kUnknownDim})).ok());
  EXPECT_FALSE(Spec(Dense(kInt32, {3})).Admits(Dense(kInt32, Shape::UnknownRank())).ok());
  EXPECT_FALSE(Spec(Dense(kInt32, {kUnknownDim})).Admits(optional).ok());
}

TEST(SpecAdmits, NamesTheFirstDifference) {
  const Spec wanted = Spec::Dict({{"a", Scalar(kInt32)}, {"c", Spec::Tuple({Bytes(), Bytes()})}});
  const auto message = [&](const Spec& given) { return MessageOf(wanted.Admits(given)); };
  const Spec pair = Spec::Tuple({Bytes(), Bytes()});
  EXPECT_EQ(message(Spec::Dict({{"a", Scalar(kInt64)}, {"c", pair}})),
            "'a' should be TensorSpec([], int32) but is TensorSpec([], int64)");
  EXPECT_EQ(
      message(Spec::Dict({{"a", Scalar(kInt32)}, {"c", Spec::Tuple({Bytes(), Scalar(kInt8)})}})),
      "'c[1]' should be TensorSpec([], string) but is TensorSpec([], int8)");
  EXPECT_EQ(message(Spec::Dict({{"c", pair}})), "'a' is missing");
  EXPECT_EQ(message(Spec::Dict({{"a", Scalar(kInt32)}})), "'c' is missing");
  EXPECT_EQ(message(Spec::Dict({{"a", Scalar(kInt32)}, {"b", Bytes()}, {"c", pair}})),
            "'b' is not expected");
  EXPECT_EQ(message(Spec::Dict({{"a", Scalar(kInt32)}, {"c", Spec::Tuple({Bytes()})}})),
            "'c[1]' is missing");
  EXPECT_EQ(message(Bytes()), "the element should be a dict but is TensorSpec([], string)");
  EXPECT_EQ(wanted.Admits(Bytes()).code(), absl::StatusCode::kInvalidArgument);
}

TEST(SpecFingerprint, IsTheSameInEveryRelease) {
  const Spec spec =
      Spec::Dict({{"image", Dense(kUInt8, {224, 224, 3})}, {"label", Scalar(kInt32)}});
  EXPECT_EQ(spec.fingerprint(), 8398768201807596057u);
  EXPECT_EQ(spec.structure_fingerprint(), 14920636936980569730u);
}

TEST(SpecFingerprint, DiffersWithAnythingInTheNest) {
  const Spec spec = Spec::Dict({{"a", Dense(kInt32, {2})}});
  TensorSpec optional = Dense(kInt32, {2});
  optional.optional = true;
  const Spec others[] = {Spec::Dict({{"b", Dense(kInt32, {2})}}),
                         Spec::Tuple({Dense(kInt32, {2})}),
                         Dense(kInt32, {2}),
                         Spec::Dict({{"a", Dense(kInt64, {2})}}),
                         Spec::Dict({{"a", Dense(kInt32, {kUnknownDim})}}),
                         Spec::Dict({{"a", Dense(kInt32, Shape::UnknownRank())}}),
                         Spec::Dict({{"a", Sparse(kInt32, {2})}}),
                         Spec::Dict({{"a", optional}}),
                         Spec::Dict({{"a", Spec::Tuple({Dense(kInt32, {2})})}})};
  for (const Spec& other : others) {
    EXPECT_NE(other.fingerprint(), spec.fingerprint()) << other.ToString();
    EXPECT_FALSE(other == spec) << other.ToString();
  }
}

TEST(SpecFingerprint, OfTheStructureLeavesShapesOut) {
  const Spec spec = Spec::Dict({{"a", Dense(kInt32, {2})}});
  EXPECT_EQ(Spec::Dict({{"a", Dense(kInt32, {kUnknownDim})}}).structure_fingerprint(),
            spec.structure_fingerprint());
  EXPECT_NE(Spec::Dict({{"a", Dense(kInt64, {2})}}).structure_fingerprint(),
            spec.structure_fingerprint());
  EXPECT_NE(Spec::Dict({{"b", Dense(kInt32, {2})}}).structure_fingerprint(),
            spec.structure_fingerprint());
}

}  // namespace
}  // namespace penstock
