// SPDX-License-Identifier: Apache-2.0
// docs/datasets.md has a true row for every kind of node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "dataplane/dataset/graph/registry.h"
#include "tests/dataplane/dataset/suite.h"

namespace penstock::suite {
namespace {

constexpr size_t kColumns = 8;
constexpr size_t kNode = 0, kSplits = 2, kCases = 7;
using Row = std::vector<std::string>;

// Returns the parts of the text between backquotes.
std::vector<std::string> Quoted(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '`');
  std::vector<std::string> quoted;
  for (size_t i = 1; i < parts.size(); i += 2) quoted.push_back(parts[i]);
  return quoted;
}

// Returns the rows of the tables of nodes, by node.
std::map<std::string, Row> PageRows() {
  std::map<std::string, Row> rows;
  std::ifstream page(NODES_PAGE);
  EXPECT_TRUE(page.good()) << NODES_PAGE;
  std::string line;
  while (std::getline(page, line)) {
    if (!absl::StartsWith(line, "| `")) continue;
    Row cells;
    for (absl::string_view cell : absl::StrSplit(line, '|'))
      cells.emplace_back(absl::StripAsciiWhitespace(cell));
    cells = Row(cells.begin() + 1, cells.end() - 1);  // drops the parts outside the bars
    if (cells.size() != kColumns) continue;           // another table
    const std::string node = Quoted(cells[kNode]).at(0);
    EXPECT_FALSE(rows.contains(node)) << node << " has two rows";
    rows[node] = std::move(cells);
  }
  return rows;
}

TEST(NodesPage, HasARowForEveryKindAndNoOther) {
  std::map<std::string, Row> rows = PageRows();
  EXPECT_EQ(rows.erase("Distribute"), 1);  // in a layer above, with tests of its own
  for (const NodeKind* kind : NodeKinds())
    EXPECT_EQ(rows.erase(kind->op), 1) << kind->op << " has no row in docs/datasets.md";
  for (const char* optional : {"Parquet", "ParquetOf"})  // only in builds with Arrow
    if (FindNodeKind(optional) == nullptr) rows.erase(optional);
  for (const auto& [node, row] : rows) ADD_FAILURE() << node << " is no kind of node";
}

TEST(NodesPage, SaysTruthfullyHowEachIsDivided) {
  const std::map<std::string, Row> rows = PageRows();
  for (const NodeKind* kind : NodeKinds()) {
    const auto row = rows.find(kind->op);
    if (row == rows.end()) continue;
    const std::string& splits = row->second[kSplits];
    EXPECT_EQ(absl::StartsWith(splits, "provider"), kind->plan != nullptr) << kind->op;
    EXPECT_EQ(absl::StartsWith(splits, "in functions"), kind->takes_argument) << kind->op;
  }
}

TEST(NodesPage, NamesCasesThatStandForTheirNode) {
  std::map<std::string, Case> cases;
  for (Case& c : AllCases()) cases[c.name] = c;
  const std::map<std::string, Row> rows = PageRows();
  for (const NodeKind* kind : NodeKinds()) {
    const auto row = rows.find(kind->op);
    if (row == rows.end()) continue;
    const std::vector<std::string> named = Quoted(row->second[kCases]);
    EXPECT_FALSE(named.empty()) << kind->op << " names no case";
    bool together_the_whole = false;
    for (const std::string& name : named) {
      ASSERT_TRUE(cases.contains(name)) << kind->op << ": the suite has no case " << name;
      EXPECT_THAT(cases[name].kinds, ::testing::Contains(kind->op)) << name;
      together_the_whole = together_the_whole || cases[name].divides;
    }
    EXPECT_TRUE(together_the_whole || !absl::StartsWith(row->second[kSplits], "divided"))
        << kind->op << " is said to be divided, and no case of it shows that";
  }
}

}  // namespace
}  // namespace penstock::suite
