// SPDX-License-Identifier: Apache-2.0
// The journal on a disk that fails at any of its operations and then loses power. SQLite's file is
// not on that disk.
#include "tests/control/journal/failing_disk.h"

#include <filesystem>

#include "control/journal/journal.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

// SQLite writes to the folder itself, the journal to that of the same name on the disk.
OpenJournal NewSqliteJournal() {
  const std::string folder = ::testing::TempDir() + "/journal_on_a_failing_disk";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return [folder](Disk& disk) { return OpenSqliteJournal(folder, disk); };
}

TEST(JournalOnAFailingDisk, LosesNothingDurableWhenItsProcessIsKilled) {
  FailAnywhere(NewSqliteJournal, absl::AbortedError("killed"), /*for_good=*/true);
}

TEST(JournalOnAFailingDisk, LosesNothingDurableWhenOneOperationFails) {
  FailAnywhere(NewSqliteJournal, absl::InternalError("an I/O error"), /*for_good=*/false);
}

TEST(JournalOnAFailingDisk, LosesNothingDurableWhenTheDiskIsFullForAMoment) {
  FailAnywhere(NewSqliteJournal, absl::ResourceExhaustedError("full"), /*for_good=*/false);
}

}  // namespace
}  // namespace penstock::control
