// SPDX-License-Identifier: Apache-2.0
// The main() of every test program. A program holds the cases of a folder; --files=PATH,PATH… runs
// only those that these source files declare (paths from the root of the repository), and
// --gtest_filter narrows them further.
#include <fnmatch.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace penstock {
namespace {

bool MatchesAny(const std::string& name, const std::string& patterns) {
  for (const std::string& pattern : std::vector<std::string>(absl::StrSplit(patterns, ':'))) {
    if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
  }
  return false;
}

// Interprets --gtest_filter: patterns that select, then after '-' patterns that exclude.
bool PassesFilter(const std::string& name, const std::string& filter) {
  const std::vector<std::string> parts = absl::StrSplit(filter, absl::MaxSplits('-', 1));
  const std::string selects = parts[0].empty() ? "*" : parts[0];
  return MatchesAny(name, selects) && (parts.size() == 1 || !MatchesAny(name, parts[1]));
}

// The compiler may have got an absolute path or a relative one.
bool DeclaredIn(const testing::TestInfo& test, const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    if (test.file() == file || absl::EndsWith(test.file(), absl::StrCat("/", file))) return true;
  }
  return false;
}

std::vector<std::string> NamesOfCases(const std::vector<std::string>& files,
                                      const std::string& filter) {
  std::vector<std::string> names;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      const std::string name = absl::StrCat(suite.name(), ".", test.name());
      if (DeclaredIn(test, files) && PassesFilter(name, filter)) names.push_back(name);
    }
  }
  return names;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    absl::string_view files = argv[i];
    if (!absl::ConsumePrefix(&files, "--files=")) {
      std::fprintf(stderr, "%s: unknown argument %s\n", argv[0], argv[i]);
      return 2;
    }
    const std::vector<std::string> names =
        penstock::NamesOfCases(absl::StrSplit(files, ','), testing::GTEST_FLAG(filter));
    if (names.empty()) {
      std::fprintf(stderr, "%s: none of its cases is in %s\n", argv[0], argv[i]);
      return 2;
    }
    testing::GTEST_FLAG(filter) = absl::StrJoin(names, ":");
  }
  return RUN_ALL_TESTS();
}
