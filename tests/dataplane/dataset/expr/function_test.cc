// SPDX-License-Identifier: Apache-2.0
// Tracing and running: the functions that result, and the messages of mistakes.
#include "dataplane/dataset/expr/function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "dataplane/dataset/expr/random.h"
#include "tests/dataplane/dataset/expr/run_function.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Spec AB() {
  return Spec::Dict({{"a", Dense(kFloat32, {2})}, {"b", Scalar(kInt64)}});
}

std::string ErrorOf(const MapFunction& fn, const Spec& input) {
  const auto def = Trace(fn, input);
  EXPECT_EQ(def.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(def.status().message());
}

TEST(Trace, ComputesOnAMember) {
  const auto results = RunOn([](auto x) { return x * 2 + 1; }, {Values<float>({2}, {1, 2.5})});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].values<float>(), ElementsAre(3, 6));
  EXPECT_TRUE((*results)[0].placed);
}

TEST(Trace, GivesTheSpecAtOnce) {
  const auto def = Trace(
      [](auto x) {
        EXPECT_EQ(x["a"].dtype(), kFloat32);
        return Struct({{"y", Cast(x["a"], kFloat64)}, {"x", x["b"] > 3}});
      },
      AB());
  ASSERT_TRUE(def.ok()) << def.status();
  EXPECT_EQ((*def)->output, Spec::Dict({{"x", Scalar(kBool)}, {"y", Dense(kFloat64, {2})}}));
}

TEST(Trace, SharesEqualOperationsAndDropsUnusedOnes) {
  const auto def = Trace(
      [](auto x) {
        Exp(x["a"]);  // is not used
        return Tuple({x["a"] * 2 + x["a"] * 2, x["b"]});
      },
      AB());
  ASSERT_TRUE(def.ok()) << def.status();
  std::vector<std::string> ops;
  for (const OpDef& op : (*def)->ops) ops.push_back(op.op);
  EXPECT_THAT(ops, ElementsAre("Constant", "Multiply", "Add"));
}

Expr AddUp(Expr x, int times) {
  for (int i = 0; i < times; ++i) x = x + 1;
  return x;
}

TEST(Trace, IsNoDeeperOnTheStackForALongFunction) {
  const auto def = Trace([](auto x) { return AddUp(x, 9'990); }, Scalar(kInt64));
  ASSERT_TRUE(def.ok()) << def.status();
  EXPECT_GE((*def)->ops.size(), 9'990u);
}

TEST(Trace, RefusesTooLongChainsOfOperations) {
  EXPECT_THAT(ErrorOf([](auto x) { return AddUp(x, 20'000); }, Scalar(kInt64)),
              HasSubstr("Add: more than 10000 operations in one chain"));
}

TEST(Trace, HandsInputsThrough) {
  const auto results = RunOn(
      [](auto x) {
        return Tuple({x[1], x[0], x[0]});
      },
      {Value<int64_t>(7), String("seven")});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].strings(), ElementsAre("seven"));
  EXPECT_THAT((*results)[1].values<int64_t>(), ElementsAre(7));
  EXPECT_THAT((*results)[2].values<int64_t>(), ElementsAre(7));
  EXPECT_FALSE((*results)[1].placed);
}

TEST(Trace, MakesAValueThatIsTwoResultsOnce) {
  const auto results = RunOn(
      [](auto x) {
        Expr y = x + 1;
        return Tuple({y, y, y * 2});
      },
      {Value<int32_t>(4)});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].values<int32_t>(), ElementsAre(5));
  EXPECT_THAT((*results)[1].values<int32_t>(), ElementsAre(5));
  EXPECT_THAT((*results)[2].values<int32_t>(), ElementsAre(10));
  EXPECT_TRUE((*results)[0].placed);
  EXPECT_FALSE((*results)[1].placed);
}

TEST(Trace, NamesTheOperationAndTheArgumentThatDoNotFit) {
  EXPECT_THAT(ErrorOf([](auto x) { return x["a"] + x["b"]; }, AB()),
              HasSubstr("Add: argument 0 is float32 and argument 1 is int64"));
  EXPECT_THAT(ErrorOf([](auto x) { return Exp(x["b"]); }, AB()),
              HasSubstr("Exp: argument 0 is int64; expected floating-point numbers"));
  EXPECT_THAT(ErrorOf([](auto x) { return x["c"] + 1; }, AB()), HasSubstr("no member 'c' in {"));
  EXPECT_THAT(ErrorOf([](auto x) { return -x; }, AB()), HasSubstr("Negate: argument 0 is a nest"));
  EXPECT_THAT(ErrorOf([](auto x) { return x["a"] && x["a"]; }, AB()), HasSubstr("expected bool"));
  EXPECT_THAT(ErrorOf([](auto x) { return x[0] + x[1]; },
                      Spec::Tuple({Dense(kInt32, {2}), Dense(kInt32, {3})})),
              HasSubstr("shapes [2] and [3] do not broadcast"));
}

TEST(Trace, RefusesValuesOfAnotherFunction) {
  const Expr outer = SymbolicInput(AB());
  EXPECT_THAT(ErrorOf([&](auto x) { return x["b"] + outer["b"]; }, AB()),
              HasSubstr("another function's element"));
}

TEST(Trace, LiteralsTakeTheDtypeTheyMeet) {
  const Spec spec = Spec::Tuple({Scalar(kInt8), Scalar(kFloat16)});
  const auto def = Trace([](auto x) { return Tuple({x[0] + 100, 2.5 * x[1], 3 - x[1]}); }, spec);
  ASSERT_TRUE(def.ok()) << def.status();
  EXPECT_EQ((*def)->output, Spec::Tuple({Scalar(kInt8), Scalar(kFloat16), Scalar(kFloat16)}));
  EXPECT_THAT(ErrorOf([](auto x) { return x[0] + 200; }, spec),
              HasSubstr("the literal 200 cannot be represented as int8"));
  EXPECT_THAT(ErrorOf([](auto x) { return x[0] * 1.5; }, spec),
              HasSubstr("the literal 1.5 cannot be represented as int8"));
}

TEST(Run, BroadcastsLikeNumPy) {
  const auto results =
      RunOn([](auto x) { return x[0] * x[1]; },
            {Values<int32_t>({2, 1, 3}, {1, 2, 3, 4, 5, 6}), Values<int32_t>({2, 1}, {10, 100})});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].dims, ElementsAre(2, 2, 3));
  EXPECT_THAT((*results)[0].values<int32_t>(),
              ElementsAre(10, 20, 30, 100, 200, 300, 40, 50, 60, 400, 500, 600));
}

TEST(Run, ChecksUnknownDimensionsWhenTheyAreKnown) {
  const auto def = Trace([](auto x) { return x[0] + x[1]; },
                         Spec::Tuple({Dense(kInt32, {kUnknownDim}), Dense(kInt32, {2})}));
  ASSERT_TRUE(def.ok()) << def.status();
  EXPECT_EQ((*def)->output, Spec(Dense(kInt32, {2})));
  const auto bound = *BoundFunction::Bind(*def);
  EXPECT_TRUE(RunBound(*bound, {Values<int32_t>({1}, {1}), Values<int32_t>({2}, {1, 2})}).ok());
  const auto wrong =
      RunBound(*bound, {Values<int32_t>({3}, {1, 2, 3}), Values<int32_t>({2}, {1, 2})});
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(wrong.status().message(), HasSubstr("Add: shapes [3] and [2]"));
}

TEST(Run, RefusesAnElementOfAnotherSpec) {
  const auto bound = *BoundFunction::Bind(*Trace([](auto x) { return x + 1; }, Scalar(kInt64)));
  const auto wrong = RunBound(*bound, {Value<float>(1)});
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Run, IntegerDivisionByZeroIsAnError) {
  for (const MapFunction& fn : {MapFunction([](auto x) { return x[0] / x[1]; }),
                                MapFunction([](auto x) { return x[0] % x[1]; })}) {
    const auto wrong = RunOn(fn, {Values<int32_t>({2}, {4, 5}), Values<int32_t>({2}, {2, 0})});
    EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(wrong.status().message(), HasSubstr("division by zero"));
  }
}

TEST(Run, TheLowestIntegerWrapsWhenNegated) {
  constexpr int32_t kLowest = std::numeric_limits<int32_t>::lowest();
  const auto results = RunOn(
      [](auto x) {
        return Tuple({-x, x / -1, x % -1, Abs(x), x - 1});
      },
      {Value<int32_t>(kLowest)});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0].values<int32_t>()[0], kLowest);
  EXPECT_EQ((*results)[1].values<int32_t>()[0], kLowest);
  EXPECT_EQ((*results)[2].values<int32_t>()[0], 0);
  EXPECT_EQ((*results)[3].values<int32_t>()[0], kLowest);
  EXPECT_EQ((*results)[4].values<int32_t>()[0], std::numeric_limits<int32_t>::max());
}

TEST(Run, CastsClampValuesOutOfRange) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto results = RunOn(
      [](auto x) {
        return Tuple({Cast(x, kUInt8), Cast(x, kInt64)});
      },
      {Values<float>({5}, {-3, 255.9f, 1e30f, nan, -1e30f})});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].values<uint8_t>(), ElementsAre(0, 255, 255, 0, 0));
  EXPECT_THAT((*results)[1].values<int64_t>(),
              ElementsAre(-3, 255, std::numeric_limits<int64_t>::max(), 0,
                          std::numeric_limits<int64_t>::lowest()));
}

TEST(CheckFunction, FindsMistakes) {
  const FunctionDef good = **Trace([](auto x) { return x["a"] + 1; }, AB());
  EXPECT_TRUE(CheckFunction(good).ok());

  FunctionDef unknown = good;
  unknown.ops[0].op = "Nonsense";
  EXPECT_EQ(CheckFunction(unknown).code(), absl::StatusCode::kNotFound);

  FunctionDef forward = good;
  forward.ops[1].inputs[1] = 3;  // its own output
  EXPECT_THAT(CheckFunction(forward).message(), HasSubstr("uses value 3, but only 3 come before"));

  FunctionDef dtype = good;
  dtype.ops[1].outputs[0].dtype = kInt32;
  EXPECT_THAT(CheckFunction(dtype).message(), HasSubstr("do not match its inputs"));

  FunctionDef result = good;
  result.results[0] = 99;
  EXPECT_THAT(CheckFunction(result).message(), HasSubstr("value 99, which does not exist"));

  FunctionDef attr = good;
  attr.ops[0].attrs["dims"] = int64_t{3};
  EXPECT_THAT(CheckFunction(attr).message(), HasSubstr("attribute 'dims' has type integer"));

  FunctionDef short_data = good;
  short_data.ops[0].attrs["data"] = std::string("ab");
  EXPECT_THAT(CheckFunction(short_data).message(), HasSubstr("does not match the dims"));
}

// From kat_vectors of the authors' Random123.
TEST(Random, GivesThePublishedVectors) {
  EXPECT_THAT(Philox4x32({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(
      Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Random, DependsOnEveryPartOfTheKey) {
  const RandomKey key{.seed = 1, .repetition = 2, .partition = 3, .node = 4, .element = 5};
  const uint64_t bits = RandomBits(key, 6);
  EXPECT_EQ(bits, RandomBits(key, 6));
  EXPECT_NE(bits, RandomBits(key, 7));
  for (auto change : std::vector<void (*)(RandomKey&)>{
           [](RandomKey& k) { ++k.seed; }, [](RandomKey& k) { ++k.repetition; },
           [](RandomKey& k) { ++k.partition; }, [](RandomKey& k) { ++k.node; },
           [](RandomKey& k) { ++k.element; }, [](RandomKey& k) { k.element += 1ull << 32; }}) {
    RandomKey other = key;
    change(other);
    EXPECT_NE(bits, RandomBits(other, 6));
  }
}

TEST(Random, UnitIsUniform) {
  int buckets[10] = {};
  for (uint64_t element = 0; element < 10000; ++element) {
    const double unit = RandomUnit({.seed = 9, .element = element}, 0);
    ASSERT_GE(unit, 0);
    ASSERT_LT(unit, 1);
    ++buckets[static_cast<int>(unit * 10)];
  }
  for (int count : buckets) EXPECT_NEAR(count, 1000, 150);  // five standard deviations
}

}  // namespace
}  // namespace penstock
