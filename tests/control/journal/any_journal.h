// SPDX-License-Identifier: Apache-2.0
// The suites that journals pass: AnyJournal, and DurableJournal for those that outlive a process.
// Their cases are in journal_test.cc.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "control/journal/journal.h"
#include "gtest/gtest.h"

namespace penstock::control {

// Where one journal is. Each Open() is another life of its dispatcher, after the end of the one
// before.
class JournalPlace {
 public:
  virtual ~JournalPlace() = default;
  virtual absl::StatusOr<std::unique_ptr<Journal>> Open() = 0;
};

struct JournalKind {
  std::string name;
  std::function<std::unique_ptr<JournalPlace>()> make;  // an empty journal
};

class AnyJournal : public ::testing::TestWithParam<JournalKind> {
 protected:
  std::unique_ptr<Journal> Open() {
    auto journal = place_->Open();
    EXPECT_TRUE(journal.ok()) << journal.status();
    return journal.ok() ? *std::move(journal) : OpenMemoryJournal();
  }
  const std::unique_ptr<JournalPlace> place_ = GetParam().make();
};

class DurableJournal : public AnyJournal {
 protected:
  std::unique_ptr<Journal> OpenAndStart() {
    std::unique_ptr<Journal> journal = Open();
    EXPECT_TRUE(journal->Start([](absl::StatusOr<uint64_t>) {}).ok());
    return journal;
  }
  Recovered Reopen() { return Open()->TakeRecovered(); }
};

inline std::string NameOf(const ::testing::TestParamInfo<JournalKind>& info) {
  return info.param.name;
}

}  // namespace penstock::control
