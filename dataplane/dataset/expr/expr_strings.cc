// SPDX-License-Identifier: Apache-2.0
// The functions of penstock/expr.h on strings and ragged tensors, and the random functions.
#include <string>
#include <utility>

#include "dataplane/dataset/expr/node.h"
#include "penstock/expr.h"

namespace penstock {

Expr StringLength(const Expr& x) {
  return Apply1("StringLength", {}, {x});
}

Expr Substr(const Expr& x, const Expr& begin, const Expr& length) {
  const auto as_int64 = [](const Expr& n) { return n.dtype() == kInt64 ? n : Cast(n, kInt64); };
  return Apply1("Substr", {}, {x, as_int64(begin), as_int64(length)});
}

Expr StringConcat(const Expr& a, const Expr& b) {
  return Apply1("StringConcat", {}, {a, b});
}

Expr StringJoin(std::vector<Expr> parts, std::string_view separator) {
  if (parts.empty())
    return Mistake(absl::InvalidArgumentError("StringJoin: there is nothing to join"));
  Expr joined = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    if (!separator.empty()) joined = StringConcat(joined, Expr(separator));
    joined = StringConcat(joined, parts[i]);
  }
  return joined;
}

Expr ReduceJoin(const Expr& x, int axis, std::string_view separator) {
  return Apply1("ReduceJoin", {{"axis", int64_t{axis}}, {"separator", std::string(separator)}},
                {x});
}
Expr StringSplit(const Expr& x, std::string_view separator) {
  return Apply1("StringSplit", {{"separator", std::string(separator)}}, {x});
}
Expr StringLower(const Expr& x) {
  return Apply1("StringLower", {}, {x});
}
Expr StringUpper(const Expr& x) {
  return Apply1("StringUpper", {}, {x});
}
Expr StringStrip(const Expr& x) {
  return Apply1("StringStrip", {}, {x});
}
Expr StringToNumber(const Expr& x, DType dtype) {
  return Apply1("StringToNumber", {{"dtype", dtype}}, {x});
}
Expr AsString(const Expr& x, int precision) {
  return Apply1("AsString", {{"precision", int64_t{precision}}}, {x});
}
Expr RegexFullMatch(const Expr& x, std::string_view pattern) {
  return Apply1("RegexFullMatch", {{"pattern", std::string(pattern)}}, {x});
}
Expr RegexReplace(const Expr& x, std::string_view pattern, std::string_view rewrite,
                  bool replace_global) {
  return Apply1("RegexReplace",
                {{"pattern", std::string(pattern)},
                 {"rewrite", std::string(rewrite)},
                 {"global", replace_global}},
                {x});
}
Expr StringToHashBucket(const Expr& x, int64_t buckets) {
  return Apply1("StringToHashBucket", {{"buckets", buckets}}, {x});
}

Expr RowLengths(const Expr& x) {
  return Apply1("RowLengths", {}, {x});
}
Expr FlatValues(const Expr& x) {
  return Apply1("FlatValues", {}, {x});
}
Expr ToTensor(const Expr& x, std::optional<Expr> value) {
  std::vector<Expr> inputs = {x};
  if (value.has_value()) inputs.push_back(AdaptedTo(*value, x.dtype()));
  return Apply1("ToTensor", {}, std::move(inputs));
}
Expr FromRowLengths(const Expr& values, const Expr& lengths) {
  return Apply1("FromRowLengths", {}, {values, lengths});
}

Expr RandomUniform(std::vector<int64_t> dims, const Expr& low, const Expr& high) {
  Expr from = low, to = high;
  AdaptLiterals(from, to);
  return Apply1("RandomUniform", {{"dims", std::move(dims)}}, {std::move(from), std::move(to)});
}
Expr RandomNormal(std::vector<int64_t> dims, double mean, double stddev, DType dtype) {
  return Apply1("RandomNormal",
                {{"dims", std::move(dims)}, {"mean", mean}, {"stddev", stddev}, {"dtype", dtype}},
                {});
}

}  // namespace penstock
