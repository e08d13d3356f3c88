// SPDX-License-Identifier: Apache-2.0
// Parts of the language that NumPy's cases do not cover: errors and their messages, literals,
// random draws, and whether docs/expressions.md lists every operation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/str_split.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "penstock/dataset.h"
#include "tests/dataplane/dataset/expr/run_function.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns the one result of `fn` on `inputs`, or "error: …".
template <class T>
std::vector<T> ResultOf(const MapFunction& fn, const std::vector<Owned>& inputs,
                        const RandomKey& key = {}) {
  const auto results = RunOn(fn, inputs, key);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? (*results)[0].values<T>() : std::vector<T>();
}

std::string ErrorOf(const MapFunction& fn, const std::vector<Owned>& inputs) {
  return RunOn(fn, inputs).status().ToString();
}

// --- Refusals ---------------------------------------------------------------------

TEST(Language, RefusesInWords) {
  const Owned ints = Values<int32_t>({3}, {1, 2, 3});
  const Owned floats = Values<float>({2, 2}, {1, 2, 3, 4});
  const Owned text = String("text");
  const struct {
    MapFunction fn;
    Owned input;
    std::string says;
  } cases[] = {
      {[](auto x) { return Power(x, -1); }, ints, "Power: an integer to a negative power"},
      {[](auto x) { return Floor(x); }, ints, "Floor: argument 0 is int32; expected floating"},
      {[](auto x) { return x & 1.5; }, ints, "the literal 1.5 cannot be represented as int32"},
      {[](auto x) { return x ^ x; }, floats, "BitXor: argument 0 is float32; expected integers"},
      {[](auto x) {
         return Transpose(x, {0, 0});
       },
       floats, "Transpose: axis 0 is named twice"},
      {[](auto x) { return Transpose(x, {0}); }, floats, "the permutation has 1 axes for rank 2"},
      {[](auto x) { return Squeeze(x, {0}); }, floats,
       "dimension 0 is 2; only a dimension of size 1"},
      {[](auto x) { return BroadcastTo(x, {4}); }, ints, "[3] cannot be broadcast to [4]"},
      {[](auto x) { return Tile(x, {1}); }, floats, "Tile: got 1 multiples for rank 2"},
      {[](auto x) {
         return Tile(x, {1, int64_t{1} << 40});
       },
       floats, "takes more than 4 GiB"},
      {[](auto x) {
         return Pad(x, {{0, 3}}, PadMode::kReflect);
       },
       ints, "a mirrored padding of 3 is too large for 3 values"},
      {[](auto x) {
         return Pad(x, {{0, -1}});
       },
       ints, "a padding is negative"},
      {[](auto x) { return StridedSlice(x, {{.step = 0}}); }, ints, "step must not be 0"},
      {[](auto x) {
         return Concat({x, Reshape(x, {1, 3})});
       },
       ints, "argument 1 has a different shape"},
      {[](auto x) {
         return Concat({x, Cast(x, kInt64)});
       },
       ints, "argument 1 is int64"},
      {[](auto x) { return Tuple(Unstack(x, 1)); }, ints,
       "Unstack: axis 1 is out of range for rank 1"},
      {[](auto x) { return Gather(x, 3); }, ints, "index 3 is out of range for 3 rows"},
      {[](auto x) { return Range(0, x[0], 0); }, ints, "Range: delta must not be 0"},
      {[](auto x) { return TopK(x, 4); }, ints, "k is 4, but the last axis has 3 values"},
      {[](auto x) { return ArgMax(x, 1); }, ints, "axis 1 is out of range for rank 1"},
      {[](auto x) { return ArgMax(Slice(x, {0}, {0})); }, ints, "no values to choose from"},
      {[](auto x) { return MatMul(x, x); }, ints, "MatMul: both arguments need two axes"},
      {[](auto x) {
         return MatMul(x, Reshape(x, {1, 4}));
       },
       floats, "the rows of argument 0 have 2 values, but the columns of argument 1 have 1"},
      {[](auto x) { return ReduceAny(x); }, ints, "ReduceAny: argument 0 is int32; expected bool"},
      {[](auto x) { return Substr(x, 5, 1); }, text,
       "1 bytes from offset 5 of 'text', which has 4"},
      {[](auto x) { return RegexFullMatch(x, "a("); }, text,
       "RegexFullMatch: invalid pattern 'a('"},
      {[](auto x) { return RegexReplace(x, "a", "\\1"); }, text, "invalid rewrite '\\\\1'"},
      {[](auto x) { return StringToHashBucket(x, 0); }, text, "buckets must be at least 1"},
      {[](auto x) { return AsString(x, 65); }, floats, "precision must be -1 to 64, not 65"},
      {[](auto x) { return RowLengths(x); }, ints, "RowLengths: argument 0 is"},
      {[](auto x) { return FromRowLengths(x, Cast(x, kInt64)); }, ints,
       "row 2 has length 3, but 0 values are left"},
      {[](auto x) { return FromRowLengths(x, Cast(x[0], kInt64)); }, ints, "not an int64 vector"},
      {[](auto x) {
         return StringSplit(Reshape(x, {1, 1}));
       },
       text, "must be a scalar or a vector"},
      {[](auto) { return RandomUniform({2}, 3, 3); }, ints, "there is no value in [3, 3)"},
      {[](auto) { return RandomNormal({2}, 0, -1); }, ints, "stddev 0 or more"},
  };
  for (const auto& c : cases) EXPECT_THAT(ErrorOf(c.fn, {c.input}), HasSubstr(c.says));
}

TEST(Language, RaggedValuesTakeRaggedOperationsAlone) {
  Owned ragged = Values<int32_t>({3}, {1, 2, 3});
  ragged.splits = {{0, 1, 3}};
  EXPECT_THAT(ErrorOf([](auto x) { return x + 1; }, {ragged}),
              HasSubstr("Add: argument 0 is RaggedSpec"));
  EXPECT_THAT(ErrorOf([](auto x) { return FromRowLengths(ReduceSum(x), x); }, {ragged}),
              HasSubstr("it must be a dense tensor that is not optional"));
}

// --- Literals ----------------------------------------------------------------------

TEST(Language, LiteralsTakeTheDtypeOfTheOtherOperand) {
  const Owned bytes = Values<uint8_t>({3}, {0, 100, 255});
  EXPECT_THAT(ResultOf<uint8_t>([](auto x) { return Clip(x, 10, 200); }, {bytes}),
              ElementsAre(10, 100, 200));
  EXPECT_THAT(ResultOf<uint8_t>(
                  [](auto x) {
                    return Pad(x, {{1, 0}}, PadMode::kConstant, 7);
                  },
                  {bytes}),
              ElementsAre(7, 0, 100, 255));
  EXPECT_THAT(ResultOf<uint8_t>([](auto x) { return (x & 15) << 1; }, {bytes}),
              ElementsAre(0, 8, 30));
  EXPECT_THAT(ResultOf<int64_t>([](auto x) { return Range(0, x, 2); }, {Value<int64_t>(5)}),
              ElementsAre(0, 2, 4));
  EXPECT_THAT(ResultOf<int64_t>([](auto x) { return Range(x, 0, -1); }, {Value<int64_t>(2)}),
              ElementsAre(2, 1));
}

TEST(Language, WorksOnDimensionsThatAreKnownOnlyAtRunTime) {
  const auto def = Trace(
      [](auto x) {
        return Tuple({Concat({x, Reverse(x, {0})}), Pad(x, {{1, 1}, {0, 0}}), Transpose(x),
                      StridedSlice(x, {{.step = -1}}), CumSum(x), ExpandDims(x, -1)});
      },
      Dense(kInt32, {kUnknownDim, 2}));
  ASSERT_TRUE(def.ok()) << def.status();
  EXPECT_EQ((*def)->output.ToString(),
            "(TensorSpec([?,2], int32), TensorSpec([?,2], int32), TensorSpec([2,?], int32), "
            "TensorSpec([?,2], int32), TensorSpec([?,2], int64), TensorSpec([?,2,1], int32))");
  const auto bound = BoundFunction::Bind(*def);
  ASSERT_TRUE(bound.ok()) << bound.status();
  const auto results = RunBound(**bound, {Values<int32_t>({2, 2}, {1, 2, 3, 4})});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].values<int32_t>(), ElementsAre(1, 2, 3, 4, 3, 4, 1, 2));
  EXPECT_THAT((*results)[1].values<int32_t>(), ElementsAre(0, 0, 1, 2, 3, 4, 0, 0));
  EXPECT_THAT((*results)[2].values<int32_t>(), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT((*results)[3].values<int32_t>(), ElementsAre(3, 4, 1, 2));
  EXPECT_THAT((*results)[4].values<int64_t>(), ElementsAre(1, 2, 4, 6));
}

TEST(Language, RaggedRowsOfTextPassThroughADataset) {
  const std::vector<std::string> lines = {"to be", "", "or not to be"};
  const Dataset words = Dataset::FromTensorSlices(lines).Batch(3).Map([](auto x) {
    const Expr split = StringSplit(x);
    return Struct({{"words", split},
                   {"counts", RowLengths(split)},
                   {"dense", ToTensor(split, "-")},
                   {"upper", FromRowLengths(StringUpper(FlatValues(split)), RowLengths(split))}});
  });
  ASSERT_TRUE(words.status().ok()) << words.status();
  Iterator it = *words.MakeIterator();
  const auto element = it.Next();
  ASSERT_TRUE(element.ok()) << element.status();
  const Element& batch = **element;
  EXPECT_THAT(batch["counts"].data<int64_t>(), ElementsAre(2, 0, 4));
  EXPECT_THAT(batch["words"].row_splits(0), ElementsAre(0, 2, 2, 6));
  EXPECT_EQ(batch["upper"].string(5), "BE");
  EXPECT_THAT(batch["dense"].dims(), ElementsAre(3, 4));
  EXPECT_EQ(batch["dense"].string(1 * 4), "-");
  EXPECT_EQ(batch["dense"].string(2 * 4 + 3), "be");
}

// --- Draws -----------------------------------------------------------------------------

TEST(Language, DrawsDependOnSeedElementAndOperation) {
  const MapFunction two = [](auto) {
    return Concat({RandomUniform({4}, 0, 1 << 30), RandomUniform({4}, 0, 1 << 30)});
  };
  const std::vector<Owned> input = {Value<int64_t>(0)};
  const auto first = ResultOf<int32_t>(two, input, {.seed = 1, .element = 5});
  EXPECT_EQ(first, ResultOf<int32_t>(two, input, {.seed = 1, .element = 5}));
  EXPECT_NE(first, ResultOf<int32_t>(two, input, {.seed = 2, .element = 5}));
  EXPECT_NE(first, ResultOf<int32_t>(two, input, {.seed = 1, .element = 6}));
  EXPECT_EQ(std::set<int32_t>(first.begin(), first.end()).size(), 8u);  // no two of them equal
}

TEST(Language, UniformDrawsFillTheirRange) {
  constexpr int64_t kCount = 60'000;
  const std::vector<Owned> input = {Value<int64_t>(0)};
  std::map<int64_t, int> counts;
  for (int64_t value :
       ResultOf<int64_t>([](auto) { return RandomUniform({kCount}, int64_t{-2}, int64_t{4}); },
                         input, {.seed = 3}))
    ++counts[value];
  ASSERT_EQ(counts.size(), 6u);
  EXPECT_EQ(counts.begin()->first, -2);
  double chi_square = 0;
  for (const auto& [value, count] : counts)
    chi_square += (count - kCount / 6.0) * (count - kCount / 6.0) / (kCount / 6.0);
  EXPECT_LT(chi_square, 20.5);  // 5 degrees of freedom: one seed in a thousand is above

  double sum = 0;
  for (float value : ResultOf<float>([](auto) { return RandomUniform({kCount}, 2.0f, 3.0f); },
                                     input, {.seed = 4})) {
    ASSERT_TRUE(value >= 2 && value < 3) << value;
    sum += value;
  }
  EXPECT_NEAR(sum / kCount, 2.5, 0.005);  // 4 standard errors
}

TEST(Language, NormalDrawsHaveTheirMomentsAndAnOddCount) {
  constexpr int64_t kCount = 60'001;
  const std::vector<double> values =
      ResultOf<double>([](auto) { return RandomNormal({kCount}, 10, 2, kFloat64); },
                       {Value<int64_t>(0)}, {.seed = 5});
  ASSERT_EQ(values.size(), static_cast<size_t>(kCount));
  double sum = 0, squares = 0, fourths = 0;
  for (double value : values) {
    const double z = (value - 10) / 2;
    sum += z;
    squares += z * z;
    fourths += z * z * z * z;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.017);
  EXPECT_NEAR(squares / kCount, 1, 0.024);
  EXPECT_NEAR(fourths / kCount, 3, 0.16);
}

// --- The page ------------------------------------------------------------------------------

TEST(Language, ThePageHasARowForEveryOperation) {
  std::stringstream page;
  for (const char* name : {EXPRESSIONS_PAGE, IMAGES_PAGE}) page << std::ifstream(name).rdbuf();
  const std::map<std::string, std::string> written = {
      {"Add", "`a + b`"},    {"Subtract", "`a - b`"},   {"Multiply", "`a * b`"},
      {"Divide", "`a / b`"}, {"Remainder", "`a % b`"},  {"Negate", "`-a`"},
      {"Equal", "`==`"},     {"NotEqual", "`!=`"},      {"Less", "`<`"},
      {"LessEqual", "`<=`"}, {"Greater", "`>`"},        {"GreaterEqual", "`>=`"},
      {"And", "`&&`"},       {"Or", "`\\|\\|`"},        {"Not", "`!`"},
      {"BitAnd", "`a & b`"}, {"BitOr", "`a \\| b`"},    {"BitXor", "`a ^ b`"},
      {"BitNot", "`~a`"},    {"ShiftLeft", "`a << b`"}, {"ShiftRight", "`a >> b`"},
      {"Index", "`x[i]`"},   {"Constant", "Literals"},  {"ParseExample", "`ParseExampleProto"},
  };
  for (const OpRow* row : AllOps()) {
    const std::string name(row->name);
    const auto other = written.find(name);
    if (other != written.end()) {
      EXPECT_THAT(page.str(), HasSubstr(other->second)) << name;
      continue;
    }
    const bool there = page.str().find("`" + name + "`") != std::string::npos ||
                       page.str().find("`" + name + "(") != std::string::npos;
    EXPECT_TRUE(there) << "neither docs/expressions.md nor docs/images.md has a row for " << name;
  }
}

}  // namespace
}  // namespace penstock
