// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/expr/op_registry.h"

#include <map>

namespace penstock {
namespace {

using Table = std::map<absl::string_view, OpRow>;

const Table& Rows() {
  static const Table* const table = [] {
    auto* rows = new Table;
    for (auto* group :
         {ConstantOps, ArithmeticOps, MathOps,   BitOps,    CompareOps, CastOps,   ShapeOps,
          LayoutOps,   JoinOps,       SelectOps, ReduceOps, OrderOps,   MatMulOps, StringOps,
          TextOps,     RegexOps,      RaggedOps, RandomOps, FileOps,    DecodeOps, ImageOps,
          ColorOps,    ExampleOps,    CallOps,   PythonOps})
      for (OpRow& row : group()) rows->emplace(row.name, row);
    return rows;
  }();
  return *table;
}

}  // namespace

const OpRow* FindOp(absl::string_view name) {
  const auto found = Rows().find(name);
  return found == Rows().end() ? nullptr : &found->second;
}

std::vector<const OpRow*> AllOps() {
  std::vector<const OpRow*> rows;
  for (const auto& [name, row] : Rows()) rows.push_back(&row);
  return rows;
}

}  // namespace penstock
