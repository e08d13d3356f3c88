// SPDX-License-Identifier: Apache-2.0
// Operations on bad arguments and bad data, and operations that NumPy does not have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "penstock/expr.h"
#include "penstock/map.h"
#include "tests/dataplane/dataset/expr/run_function.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void ExpectInvalid(const MapFunction& fn, const std::vector<Owned>& inputs, const char* message) {
  const auto results = RunOn(fn, inputs);
  EXPECT_EQ(results.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(results.status().message(), HasSubstr(message));
}

const Owned kSix = Values<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(Reshape, RefusesAnotherNumberOfValues) {
  ExpectInvalid(
      [](auto x) {
        return Reshape(x, {4, -1});
      },
      {kSix}, "Reshape: 6 values do not fill the shape [4,-1]");
  ExpectInvalid(
      [](auto x) {
        return Reshape(x, {-1, -1});
      },
      {kSix}, "more than one dimension is -1");
  ExpectInvalid([](auto x) { return Reshape(x, {0, -1}); }, {kSix}, "do not fill");
}

TEST(Slice, RefusesToReachOutside) {
  ExpectInvalid([](auto x) { return Slice(x, {0, 2}, {2, 2}); }, {kSix}, "extend outside [2,3]");
  ExpectInvalid([](auto x) { return Slice(x, {0}, {2}); }, {kSix}, "have 1 numbers for the shape");
  ExpectInvalid(
      [](auto x) {
        return Slice(x, {-1, 0}, {1, 1});
      },
      {kSix}, "begin must be at least 0");
}

// Many slices of one value are made in one step. Expects that each equals the slice made alone.
template <class T>
void ExpectSlicesAsAlone(int64_t rows, int64_t columns) {
  std::vector<T> values(rows * columns);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i * 7 + 1);
  const Owned table = Values<T>({rows, columns}, values);
  struct Part {
    std::vector<int64_t> begin, size;
  };
  std::vector<Part> parts = {{{1, 0}, {rows - 1, 2}}, {{0, 3}, {rows / 2, -1}}, {{2, 1}, {0, 3}}};
  for (int64_t width = 0; width <= 12; ++width) parts.push_back({{0, width}, {-1, width}});
  const auto all = RunOn(
      [&](auto x) {
        std::vector<Expr> slices;
        for (const Part& part : parts) slices.push_back(Slice(x, part.begin, part.size));
        slices.push_back(slices[0] + slices[0]);  // used by another operation, and returned twice
        slices.push_back(slices[1]);
        return Tuple(slices);
      },
      {table});
  ASSERT_TRUE(all.ok()) << all.status();
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto alone =
        RunOn([&](auto x) { return Slice(x, parts[i].begin, parts[i].size); }, {table});
    ASSERT_TRUE(alone.ok()) << alone.status();
    EXPECT_EQ((*all)[i].dims, (*alone)[0].dims);
    EXPECT_EQ((*all)[i].template values<T>(), (*alone)[0].template values<T>()) << i;
    EXPECT_TRUE((*all)[i].placed);
  }
  for (size_t i = 0; i < (*all)[0].template values<T>().size(); ++i) {
    EXPECT_EQ((*all)[parts.size()].template values<T>()[i],
              static_cast<T>(2 * (*all)[0].template values<T>()[i]));
  }
  EXPECT_EQ((*all)[parts.size() + 1].template values<T>(), (*all)[1].template values<T>());
}

TEST(Slice, ManyOfOneValueEqualSingleOnes) {
  ExpectSlicesAsAlone<uint8_t>(700, 30);
  ExpectSlicesAsAlone<int16_t>(3, 40);
  ExpectSlicesAsAlone<int32_t>(300, 214);
  ExpectSlicesAsAlone<double>(5, 4000);  // a row is larger than a block of work
}

TEST(Gather, NamesTheIndexThatIsOutside) {
  ExpectInvalid([](auto x) { return Gather(x[0], x[1]); }, {kSix, Values<int64_t>({2}, {1, 2})},
                "Gather: index 2 is out of range for 2 rows");
  ExpectInvalid([](auto x) { return x[-3]; }, {kSix}, "Index: index -3 is out of range for 2 rows");
}

TEST(Index, TakesARowOfATensorAndAMemberOfATuple) {
  const auto results = RunOn(
      [](auto x) {
        return Tuple({x[0][1], x[1]});
      },
      {kSix, Value<int64_t>(9)});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].values<int32_t>(), ElementsAre(4, 5, 6));
  EXPECT_THAT((*results)[1].values<int64_t>(), ElementsAre(9));
}

TEST(Reduce, RefusesAxesThatAreNotThere) {
  ExpectInvalid([](auto x) { return ReduceSum(x, {2}); }, {kSix},
                "ReduceSum: axis 2 is out of range for rank 2");
  ExpectInvalid([](auto x) { return ReduceMax(x, {0, -2}); }, {kSix}, "axis -2 is named twice");
  ExpectInvalid([](auto x) { return ReduceMin(x); }, {Values<float>({0}, {})},
                "no values to choose");
}

TEST(OneHot, LeavesRowsOfOtherIndicesAtZero) {
  const auto results =
      RunOn([](auto x) { return OneHot(x, 2, kInt32); }, {Values<int64_t>({3}, {-1, 1, 2})});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].values<int32_t>(), ElementsAre(0, 0, 0, 1, 0, 0));
}

TEST(OneHot, RefusesMoreMemoryThanThereIs) {
  const auto results =
      RunOn([](auto x) { return OneHot(x, int64_t{1} << 40); }, {Values<int64_t>({2}, {0, 1})});
  EXPECT_EQ(results.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Sizes, ThatNoMemoryHoldsAreRefusedBeforeTheyAreComputedWith) {
  constexpr int64_t kLarge = int64_t{1} << 40;
  for (const Shape& shape : {Shape({kLarge, kLarge}), Shape({0, kLarge, kLarge})}) {
    const auto def = Trace([](auto x) { return Reshape(x, {-1}); }, Dense(kInt8, shape));
    EXPECT_EQ(def.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(def.status().message(), HasSubstr("takes more than 4 GiB"));
  }
}

TEST(StringToNumber, ReadsNumbersAndQuotesOtherText) {
  const auto results = RunOn(
      [](auto x) {
        return Tuple({StringToNumber(x[0], kInt32), StringToNumber(x[1], kFloat32)});
      },
      {Strings({2}, {"-7", " 12 "}), String("2.5e3")});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].values<int32_t>(), ElementsAre(-7, 12));
  EXPECT_THAT((*results)[1].values<float>(), ElementsAre(2500));
  ExpectInvalid([](auto x) { return StringToNumber(x, kInt32); }, {String("12x\x01")},
                "StringToNumber: '12x\\x01' is not a valid int32");
  ExpectInvalid([](auto x) { return StringToNumber(x, kInt32); }, {String("2147483648")},
                "is not a valid int32");
}

TEST(ReadFile, GivesTheContentsOrNamesTheMissingFile) {
  const std::string name = testing::TempDir() + "read_file_test";
  std::ofstream(name, std::ios::binary) << std::string("a\0b", 3);
  const auto results = RunOn([](auto x) { return ReadFile(x); }, {String(name)});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].strings(), ElementsAre(std::string("a\0b", 3)));
  const auto missing = RunOn([](auto x) { return ReadFile(x); }, {String(name + "-none")});
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr(name + "-none"));
}

TEST(DecodeRaw, TakesBytesAsValues) {
  const auto results = RunOn(
      [](auto x) {
        return Tuple(
            {DecodeRaw(x, kInt16, {-1}), DecodeRaw(x, kUInt8, {2, 2}), DecodeRaw(x, kInt32, {})});
      },
      {String(std::string("\x01\x00\x02\x01", 4))});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].values<int16_t>(), ElementsAre(1, 258));
  EXPECT_THAT((*results)[1].values<uint8_t>(), ElementsAre(1, 0, 2, 1));
  EXPECT_THAT((*results)[2].values<int32_t>(), ElementsAre(0x01020001));
  // Other operations can compute with the values, however the bytes are aligned.
  for (int64_t begin = 0; begin < 8; ++begin) {
    const std::string before(begin, 'x');
    const auto sums =
        RunOn([begin](auto x) { return DecodeRaw(Substr(x, begin, 8), kInt32, {2}) + 1; },
              {String(before + std::string("\x01\x00\x00\x00\x02\x01\x00\x00", 8))});
    ASSERT_TRUE(sums.ok()) << sums.status();
    EXPECT_THAT((*sums)[0].values<int32_t>(), ElementsAre(2, 259)) << begin;
  }
  ExpectInvalid([](auto x) { return DecodeRaw(x, kInt16, {-1}); }, {String("abc")},
                "DecodeRaw: the string has 3 bytes; these dims take a multiple of 2");
  ExpectInvalid([](auto x) { return DecodeRaw(x, kUInt8, {4}); }, {String("abc")},
                "these dims take 4");
}

TEST(Constant, CarriesATensor) {
  const Owned table = Values<float>({2, 2}, {1, 2, 3, 4});
  const Owned names = Strings({2}, {"no", "yes"});
  const auto results = RunOn(
      [&](auto x) {
        return Tuple(
            {Gather(Expr::Constant(table.view()), x), Gather(Expr::Constant(names.view()), x)});
      },
      {Value<int32_t>(1)});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].values<float>(), ElementsAre(3, 4));
  EXPECT_THAT((*results)[1].strings(), ElementsAre("yes"));
}

TEST(MapChain, ChangesOneMemberOfADict) {
  const Spec spec = Spec::Dict({{"image", Dense(kUInt8, {2, 2, 3})}, {"label", Scalar(kInt64)}});
  const auto def =
      Trace(Normalize("image", {0, 0, 0}, {1, 1, 1}).Cast(kFloat16).Reshape({-1}), spec);
  ASSERT_TRUE(def.ok()) << def.status();
  EXPECT_EQ((*def)->output,
            Spec::Dict({{"image", Dense(kFloat16, {12})}, {"label", Scalar(kInt64)}}));
  EXPECT_THAT(Trace(Cast("picture", kFloat32), spec).status().message(),
              HasSubstr("no member 'picture'"));
  EXPECT_TRUE(Trace(Cast("", kFloat32), Scalar(kInt32)).ok());
}

TEST(Images, RefuseDataThatIsNoImage) {
  ExpectInvalid([](auto x) { return Resize(x, 2, 2); }, {kSix}, "Resize: argument 0 is int32");
  ExpectInvalid([](auto x) { return Resize(x, 2, 2); }, {Values<float>({4}, {1, 2, 3, 4})},
                "not an image [height, width, channels]");
  ExpectInvalid([](auto x) { return Resize(x, 0, 2); }, {Values<float>({1, 1, 1}, {1})},
                "the size is 0 x 2");
  ExpectInvalid([](auto x) { return CenterCrop(x, 2, 1); }, {Values<float>({1, 1, 1}, {1})},
                "is too small for a crop of 2 x 1");
  ExpectInvalid([](auto x) { return Resize(x, 2, 2); }, {Values<float>({0, 1, 1}, {})},
                "it must have three dimensions, none of size 0");
  ExpectInvalid(
      [](auto x) {
        return Normalize(x, {1, 2}, {1, 1});
      },
      {Values<float>({1, 1, 1}, {1})}, "mean has 2 channels");
  ExpectInvalid([](auto x) { return RandomResizedCrop(x, 2, 2, 0.5, 0.4); },
                {Values<float>({1, 1, 1}, {1})}, "the areas are 0.5 to 0.4");
}

}  // namespace
}  // namespace penstock
