// SPDX-License-Identifier: Apache-2.0
// ParseExample on bytes from a small writer of the same wire format.
#include "penstock/example.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "dataplane/dataset/expr/ops/example_wire.h"
#include "penstock/map.h"
#include "tests/dataplane/dataset/expr/run_function.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}
std::string Field(int number, const std::string& bytes) {
  return Varint(number << 3 | 2) + Varint(bytes.size()) + bytes;
}
std::string BytesList(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) list += Field(1, value);
  return Field(1, list);
}
std::string Bits(float value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
std::string FloatList(const std::vector<float>& values) {
  std::string packed;
  for (float value : values) packed += Bits(value);
  return Field(2, Field(1, packed));
}
std::string IntList(const std::vector<int64_t>& values) {
  std::string packed;
  for (int64_t value : values) packed += Varint(static_cast<uint64_t>(value));
  return Field(3, Field(1, packed));
}
std::string Example(const std::vector<std::pair<std::string, std::string>>& features) {
  std::string map;
  for (const auto& [name, feature] : features) map += Field(1, Field(1, name) + Field(2, feature));
  return Field(1, map);
}

using Features = std::vector<std::pair<std::string, TensorSpec>>;

Expr ConstantStrings(std::vector<std::string> values) {
  std::vector<Expr> parts;
  for (const std::string& value : values) parts.emplace_back(value);
  return Stack(std::move(parts));
}

absl::StatusOr<std::vector<Owned>> Parse(const std::string& bytes, const Features& features) {
  return RunOn([&](auto x) { return ParseExampleProto(x, features); }, {String(bytes)});
}

TEST(ParseExample, ReadsEveryKind) {
  const auto results = Parse(Example({{"image", BytesList({"\xFF\xD8"})},
                                      {"label", IntList({-3})},
                                      {"box", FloatList({0.5, 1, 2, 4})},
                                      {"words", BytesList({"a", "", "ccc"})},
                                      {"flags", IntList({0, 2})},
                                      {"unused", IntList({1})}}),
                             {{"image", Bytes()},
                              {"label", Scalar(kInt32)},
                              {"box", Dense(kFloat32, {2, 2})},
                              {"words", Dense(kString, {kUnknownDim})},
                              {"flags", Dense(kBool, {2})}});
  ASSERT_TRUE(results.ok()) << results.status();
  // Results are in the order of the names.
  EXPECT_THAT((*results)[0].values<float>(), ElementsAre(0.5, 1, 2, 4));
  EXPECT_THAT((*results)[0].dims, ElementsAre(2, 2));
  EXPECT_TRUE((*results)[0].placed);
  EXPECT_EQ((*results)[1].view().element_count(), 2);
  EXPECT_EQ(static_cast<const char*>((*results)[1].view().raw())[1], 1);
  EXPECT_THAT((*results)[2].strings(), ElementsAre("\xFF\xD8"));
  EXPECT_THAT((*results)[3].values<int32_t>(), ElementsAre(-3));
  EXPECT_THAT((*results)[4].strings(), ElementsAre("a", "", "ccc"));
}

TEST(ParseExample, TakesNumbersThatAreNotPacked) {
  const std::string ints =
      Field(3, Varint(1 << 3 | 0) + Varint(5) + Varint(1 << 3 | 0) + Varint(6));
  const std::string floats =
      Field(2, Varint(1 << 3 | 5) + Bits(1.5) + Varint(1 << 3 | 5) + Bits(2.5));
  const auto results = Parse(Example({{"f", floats}, {"i", ints}}),
                             {{"f", Dense(kFloat32, {2})}, {"i", Dense(kInt64, {kUnknownDim})}});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].values<float>(), ElementsAre(1.5, 2.5));
  EXPECT_THAT((*results)[1].values<int64_t>(), ElementsAre(5, 6));
}

TEST(ParseExample, MergesAsProtobufDoes) {
  // The last entry of a name counts; lists of one feature are joined.
  const auto results = Parse(Example({{"i", IntList({1})}, {"i", IntList({2, 3}) + IntList({4})}}) +
                                 Example({{"j", FloatList({1}) + IntList({7})}}),
                             {{"i", Dense(kInt64, {kUnknownDim})}, {"j", Scalar(kInt64)}});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].values<int64_t>(), ElementsAre(2, 3, 4));
  EXPECT_THAT((*results)[1].values<int64_t>(), ElementsAre(7));
}

TEST(ParseExample, NamesTheFeatureThatDoesNotFit) {
  const std::string bytes = Example(
      {{"i", IntList({1, 300})}, {"f", FloatList({1})}, {"empty", ""}, {"none", IntList({})}});
  const auto error = [&](const char* name, TensorSpec spec) {
    const auto results = Parse(bytes, {{name, spec}});
    EXPECT_EQ(results.status().code(), absl::StatusCode::kInvalidArgument) << name;
    return std::string(results.status().message());
  };
  EXPECT_THAT(error("label", Scalar(kInt64)),
              HasSubstr("ParseExample: feature 'label' is missing"));
  EXPECT_THAT(error("i", Scalar(kFloat32)),
              HasSubstr("feature 'i' is a int64_list, not a float_list"));
  EXPECT_THAT(error("empty", Bytes()), HasSubstr("feature 'empty' is a empty feature"));
  EXPECT_THAT(error("i", Dense(kInt64, {3})), HasSubstr("feature 'i' has 2 values"));
  EXPECT_THAT(error("none", Scalar(kInt64)), HasSubstr("feature 'none' has 0 values"));
  EXPECT_THAT(error("i", Dense(kUInt8, {2})),
              HasSubstr("feature 'i' contains 300, which does not fit uint8"));
  EXPECT_THAT(error("f", Dense(kFloat32, {kUnknownDim, 2})), HasSubstr("has 1 values"));
  EXPECT_THAT(error("f", Scalar(kFloat64)),
              HasSubstr("a feature must be a dense tensor of string"));
  EXPECT_THAT(error("f", Dense(kFloat32, {2, kUnknownDim})), HasSubstr("only the first dimension"));
}

TEST(ParseExample, PutsDefaultsWhereAFeatureIsMissingOrHasNoList) {
  const auto parse = [](const std::string& bytes) {
    return RunOn(
        [](auto x) {
          return ParseExampleOr(
              x, {{"words", Dense(kString, {kUnknownDim}), ConstantStrings({"a", "b"})},
                  {"label", Scalar(kInt64), Cast(Expr(-1), kInt64)},
                  {"must", Scalar(kFloat32)}});
        },
        {String(bytes)});
  };
  const std::string must = FloatList({2});
  for (const std::string& bytes :
       {Example({{"must", must}}), Example({{"must", must}, {"label", ""}, {"words", ""}})}) {
    const auto results = parse(bytes);
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_THAT((*results)[0].values<int64_t>(), ElementsAre(-1));
    EXPECT_THAT((*results)[1].values<float>(), ElementsAre(2));
    EXPECT_THAT((*results)[2].strings(), ElementsAre("a", "b"));
  }
  const auto given =
      parse(Example({{"must", must}, {"label", IntList({7})}, {"words", BytesList({"c"})}}));
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_THAT((*given)[0].values<int64_t>(), ElementsAre(7));
  EXPECT_THAT((*given)[2].strings(), ElementsAre("c"));
  EXPECT_THAT(parse(Example({{"label", IntList({7})}})).status().message(),
              HasSubstr("feature 'must' is missing"));
}

TEST(ParseExample, NamesTheDefaultThatDoesNotFit) {
  const auto error = [](TensorSpec spec, Expr otherwise) {
    return RunOn(
               [&](auto x) {
                 return ParseExampleOr(x, {{"n", spec, otherwise}});
               },
               {String("")})
        .status();
  };
  EXPECT_THAT(
      error(Scalar(kInt64), Cast(Expr(1), kInt32)).message(),
      HasSubstr("feature 'n' is TensorSpec([], int64), but its default is TensorSpec([], int32)"));
  EXPECT_THAT(error(Dense(kInt64, {2}), Cast(Expr(1), kInt64)).code(),
              absl::StatusCode::kInvalidArgument);
}

TEST(ParseExample, ReportsBrokenBytesAtEveryCut) {
  const std::string bytes = Example({{"i", IntList({1, 300})}, {"f", FloatList({1})}});
  const Features features = {{"i", Dense(kInt64, {2})}, {"f", Scalar(kFloat32)}};
  ASSERT_TRUE(Parse(bytes, features).ok());
  for (size_t cut = 1; cut < bytes.size(); ++cut) {
    const auto results = Parse(bytes.substr(0, cut), features);
    EXPECT_EQ(results.status().code(), absl::StatusCode::kDataLoss) << cut;
  }
  EXPECT_THAT(Parse(Varint(1 << 3 | 3), features).status().message(),
              HasSubstr("before byte 1 of a message of 1 bytes: an unknown wire type"));
  EXPECT_EQ(
      Parse(Example({{"i", Field(3, Field(1, "\xFF"))}}), {{"i", Scalar(kInt64)}}).status().code(),
      absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace penstock
