// SPDX-License-Identifier: Apache-2.0
// The journal on disk, for its tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "control/journal/journal.h"
#include "control/journal/log_format.h"
#include "control/observe/metrics.h"
#include "gtest/gtest.h"

namespace penstock::control {

// Returns an empty folder for the test that runs.
inline std::string NewFolder() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = absl::StrCat(test->test_suite_name(), test->name());
  std::replace(name.begin(), name.end(), '/', '_');
  const std::string folder = ::testing::TempDir() + "/journal_" + name;
  std::filesystem::remove_all(folder);
  return folder;
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Appends records 'record 1' …, each durable before the next.
inline void Fill(Journal& journal, uint64_t first, uint64_t last) {
  for (uint64_t i = first; i <= last; ++i) {
    journal.Append(i, absl::StrCat("record ", i));
    ASSERT_TRUE(journal.WaitDurable(i).ok());
  }
}

// Returns how many snapshots this process could not write.
inline int64_t FailedSnapshots() {
  return ProcessMetrics().GetCounter("penstock_journal_snapshots_failed_total", "").value();
}

class SqliteJournalTest : public ::testing::Test {
 protected:
  // Opens, appends records first … last, closes.
  void Write(uint64_t first, uint64_t last) {
    auto journal = OpenSqliteJournal(folder_);
    ASSERT_TRUE(journal.ok()) << journal.status();
    ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    Fill(**journal, first, last);
  }
  Recovered Reopen() {
    auto journal = OpenSqliteJournal(folder_);
    EXPECT_TRUE(journal.ok()) << journal.status();
    return journal.ok() ? (*journal)->TakeRecovered() : Recovered();
  }
  std::string Log(uint64_t first = 1) const {
    std::string number = absl::StrCat(first);
    return absl::StrCat(folder_, "/changes-", std::string(20 - number.size(), '0'), number, ".log");
  }
  // Returns a log of six records that each were a group, as a kill before any mark leaves it.
  static std::string SixGroups() {
    std::string log = LogHeader();
    for (uint64_t i = 1; i <= 6; ++i) AppendRecord(i, i, absl::StrCat("record ", i), log);
    return log;
  }
  const std::string folder_ = NewFolder();
};

}  // namespace penstock::control
