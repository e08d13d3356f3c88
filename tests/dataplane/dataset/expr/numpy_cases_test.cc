// SPDX-License-Identifier: Apache-2.0
// Compares every operation with NumPy: numpy_cases.txt, written by make_numpy_cases.py. Compares
// operations on images with other libraries too: image_cases.txt, by make_image_cases.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "dataplane/dataset/expr/dtype_dispatch.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "tests/dataplane/dataset/expr/run_function.h"

namespace penstock {
namespace {

using Words = std::vector<std::string>;

double NumberIn(const std::string& word) {
  return std::strtod(word.c_str(), nullptr);
}

// Decodes two hexadecimal digits a byte after a first letter. Abseil's own function differs between
// releases.
std::string BytesOf(const std::string& word) {
  std::string bytes;
  for (size_t i = 1; i < word.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(word.substr(i, 2), nullptr, 16)));
  return bytes;
}

template <class T>
std::vector<T> ParseValues(const Words& words) {
  std::vector<T> values;
  for (size_t i = 2; i < words.size(); ++i) {
    if constexpr (kIsComplex<T>) {
      values.emplace_back(NumberIn(words[i]), NumberIn(words[i + 1]));
      ++i;
    } else if constexpr (kIsHalf<T>) {
      values.push_back(T(static_cast<float>(NumberIn(words[i]))));
    } else if constexpr (std::is_floating_point_v<T>) {
      values.push_back(static_cast<T>(NumberIn(words[i])));
    } else if constexpr (std::is_unsigned_v<T>) {
      values.push_back(static_cast<T>(std::stoull(words[i])));
    } else {
      values.push_back(static_cast<T>(std::stoll(words[i])));
    }
  }
  return values;
}

// Parses "0,2,3".
std::vector<int64_t> ParseInts(absl::string_view text) {
  std::vector<int64_t> numbers;
  for (absl::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty()))
    numbers.push_back(std::stoll(std::string(word)));
  return numbers;
}

Owned ParseDense(const Words& words);

// Parses "float32 [2,1] 0x1p+0 0x1.8p+1", or "ragged:0,2,3 float32 [3] …".
Owned ParseTensor(absl::string_view text) {
  Words words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  if (!absl::StartsWith(words[0], "ragged:")) return ParseDense(words);
  const Words levels = absl::StrSplit(words[0], ':');
  words.erase(words.begin());
  Owned ragged = ParseDense(words);
  for (size_t i = 1; i < levels.size(); ++i) ragged.splits.push_back(ParseInts(levels[i]));
  return ragged;
}

Owned ParseDense(const Words& words) {
  const DType dtype = *DTypeFromName(words[0]);
  const std::vector<int64_t> dims =
      ParseInts(absl::StripSuffix(absl::StripPrefix(words[1], "["), "]"));
  if (dtype == kString) {
    std::vector<std::string> values;
    for (size_t i = 2; i < words.size(); ++i) values.push_back(BytesOf(words[i]));
    return Strings(dims, values);
  }
  Owned owned;
  if (dtype == kBool) {
    owned = Values<uint8_t>(dims, ParseValues<uint8_t>(words));
    owned.dtype = kBool;
    return owned;
  }
  return ForNumber(dtype, [&]<class T>() { return Values<T>(dims, ParseValues<T>(words)); });
}

// Returns an attribute of the type that its operation declares.
Attr ParseAttr(const OpRow& row, const std::string& name, const std::string& text) {
  for (const AttrRow& attr : row.attrs) {
    if (attr.name != name) continue;
    const Words parts = absl::StrSplit(text, ',', absl::SkipEmpty());
    if (attr.type == kAttrIndex<int64_t>) return int64_t{std::stoll(text)};
    if (attr.type == kAttrIndex<double>) return NumberIn(text);
    if (attr.type == kAttrIndex<bool>) return text == "1";
    if (attr.type == kAttrIndex<std::string>) return BytesOf(text);
    if (attr.type == kAttrIndex<DType>) return *DTypeFromName(text);
    if (attr.type == kAttrIndex<std::vector<int64_t>>) return ParseInts(text);
    if (attr.type == kAttrIndex<std::vector<double>>) {
      std::vector<double> numbers;
      for (const std::string& part : parts) numbers.push_back(NumberIn(part));
      return numbers;
    }
  }
  ADD_FAILURE() << row.name << " has no attribute " << name;
  return int64_t{0};
}

// Returns the allowed relative difference from NumPy's result: a few units in the last place,
// because sums are added in another order.
double Tolerance(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x1p-10;
    case DType::kFloat32:
    case DType::kComplex64:
      return 1e-6;
    default:
      return 1e-13;
  }
}

bool Near(double ours, double numpy, double tolerance) {
  if (std::isnan(numpy)) return std::isnan(ours);
  if (std::isinf(numpy)) return ours == numpy;
  return std::fabs(ours - numpy) <= tolerance * std::max(1.0, std::fabs(numpy));
}

// Expects integers or floats that differ by at most `within`.
void ExpectWithin(const Owned& ours, const Owned& theirs, double within) {
  ASSERT_EQ(ours.dtype, theirs.dtype);
  ASSERT_EQ(ours.dims, theirs.dims);
  ForReal(ours.dtype, [&]<class T>() {
    const auto a = ours.values<T>();
    const auto b = theirs.values<T>();
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(double(ComputedIn<T>(a[i])), double(ComputedIn<T>(b[i])), within) << i;
  });
}

void ExpectNear(const Owned& ours, const Owned& numpy) {
  ASSERT_EQ(ours.dtype, numpy.dtype);
  ASSERT_EQ(ours.dims, numpy.dims);
  ASSERT_EQ(ours.splits, numpy.splits);
  if (ours.dtype == kString) {
    EXPECT_EQ(ours.strings(), numpy.strings());
    return;
  }
  if (ours.dtype == kBool) {
    const int64_t count = ours.view().element_count();
    EXPECT_EQ(std::memcmp(ours.words.data(), numpy.words.data(), count), 0);
    return;
  }
  ForNumber(ours.dtype, [&]<class T>() {
    const auto a = ours.values<T>();
    const auto b = numpy.values<T>();
    for (size_t i = 0; i < a.size(); ++i) {
      if constexpr (kIsComplex<T>) {
        EXPECT_TRUE(Near(a[i].real(), b[i].real(), Tolerance(ours.dtype)) &&
                    Near(a[i].imag(), b[i].imag(), Tolerance(ours.dtype)))
            << i << ": " << a[i] << " for " << b[i];
      } else if constexpr (kIsInteger<T>) {
        EXPECT_EQ(a[i], b[i]) << i;
      } else {
        EXPECT_TRUE(
            Near(double(ComputedIn<T>(a[i])), double(ComputedIn<T>(b[i])), Tolerance(ours.dtype)))
            << i << ": " << ComputedIn<T>(a[i]) << " for " << ComputedIn<T>(b[i]);
      }
    }
  });
}

// Functions that consist of several operations.
using Function = std::function<std::vector<Expr>(const std::vector<Expr>& arguments,
                                                 const std::vector<int64_t>& axes)>;
const std::map<std::string, Function>& Composed() {
  static const auto* const functions = new std::map<std::string, Function>{
      {"Clip", [](auto& x, auto&) { return std::vector<Expr>{Clip(x[0], x[1], x[2])}; }},
      {"Stack",
       [](auto& x, auto& axes) { return std::vector<Expr>{Stack(x, static_cast<int>(axes[0]))}; }},
      {"Unstack", [](auto& x, auto& axes) { return Unstack(x[0], static_cast<int>(axes[0])); }},
      {"StringJoin", [](auto& x, auto&) { return std::vector<Expr>{StringJoin(x, ", ")}; }},
      {"ReduceSum.keep",
       [](auto& x, auto& axes) {
         return std::vector<Expr>{ReduceSum(x[0], {axes.begin(), axes.end()}, /*keep_dims=*/true)};
       }},
  };
  return *functions;
}

void RunCase(const std::string& line) {
  const std::vector<std::string> sides = absl::StrSplit(line, " =>");
  std::vector<std::string> parts = absl::StrSplit(sides[0], " ; ");
  const Words head = absl::StrSplit(parts[0], ' ');
  const Words name = absl::StrSplit(head[0], ':');  // with the number of the output
  const size_t output = name.size() > 1 ? std::stoull(name[1]) : 0;
  std::map<std::string, std::string> attr_texts;
  for (size_t i = 1; i < head.size(); ++i) {
    const std::pair<std::string, std::string> attr =
        absl::StrSplit(head[i], absl::MaxSplits('=', 1));
    attr_texts.insert(attr);
  }
  std::vector<Owned> inputs;
  for (size_t i = 1; i < parts.size(); ++i) inputs.push_back(ParseTensor(parts[i]));
  const auto results = RunOn(
      [&](const Expr& x) {
        std::vector<Expr> arguments;
        for (size_t i = 0; i < inputs.size(); ++i)
          arguments.push_back(inputs.size() == 1 ? x : x[i]);
        const auto composed = Composed().find(name[0]);
        if (composed != Composed().end())
          return composed->second(arguments, ParseInts(attr_texts["axis"] + attr_texts["axes"]))
              .at(output);
        const OpRow* row = FindOp(name[0]);
        if (row == nullptr) return Mistake(absl::NotFoundError("no such operation"));
        Attrs attrs;
        for (const auto& [attr, text] : attr_texts) attrs[attr] = ParseAttr(*row, attr, text);
        std::vector<Expr> outputs = Apply(row->name, attrs, arguments);
        return outputs[std::min(output, outputs.size() - 1)];  // only one, if the function is wrong
      },
      inputs);
  ASSERT_TRUE(results.ok()) << results.status();
  const std::vector<std::string> expected = absl::StrSplit(sides[1], " +- ");
  if (expected.size() > 1)
    ExpectWithin((*results)[0], ParseTensor(expected[0]), NumberIn(expected[1]));
  else
    ExpectNear((*results)[0], ParseTensor(expected[0]));
}

TEST(NumPyCases, AllAgree) {
  std::map<std::string, int> cases;
  for (const char* name : {NUMPY_CASES, IMAGE_CASES}) {
    std::ifstream file(name);
    std::string line;
    while (std::getline(file, line)) {
      if (line[0] == '#') continue;
      SCOPED_TRACE(line);
      RunCase(line);
      ++cases[line.substr(0, line.find_first_of(" :"))];
    }
  }
  // Other tests cover operations without a counterpart in NumPy.
  const std::set<std::string> others = {"Call",         "ColorJitter",       "Constant",
                                        "ParseExample", "PythonCall",        "RandomCrop",
                                        "RandomFlip",   "RandomFlipUpDown",  "RandomGrayscale",
                                        "RandomNormal", "RandomResizedCrop", "RandomUniform",
                                        "ReadFile"};
  for (const OpRow* row : AllOps()) {
    if (!others.contains(std::string(row->name))) {
      EXPECT_GT(cases[std::string(row->name)], 0) << row->name;
    }
  }
}

}  // namespace
}  // namespace penstock
