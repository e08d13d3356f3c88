// SPDX-License-Identifier: Apache-2.0
// Stores the snapshot of a simulated dispatcher's journal in a file of a Disk, because the
// product's store, SQLite, opens its file itself. The file has the format of a log
// (control/journal/log_format.h): record 1 has the snapshot's sequence and the number of pieces,
// and each piece is two further records: its key and its bytes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/env/disk.h"
#include "control/journal/journal.h"
#include "control/journal/snapshot_store.h"

namespace penstock::simulator {

// Unlike SQLite, it has no lock that keeps out a second dispatcher.
class DiskSnapshots final : public control::SnapshotStore {
 public:
  // The file is `folder`/snapshot. Each snapshot replaces it. `folder` must exist, and
  // `disk` must outlive the store.
  DiskSnapshots(Disk& disk, std::string folder);

  absl::StatusOr<Snapshot> Read() override;
  // After an error, the old or the new snapshot is there.
  absl::Status Write(uint64_t sequence, const control::SnapshotChanges& changes) override;
  absl::Status CheckThere() override;

 private:
  Disk& disk_;
  const std::string folder_;
  const std::string path_;
  std::map<std::string, std::string> pieces_;  // of the last Write() that succeeded, by key
  std::unique_ptr<DiskFile> written_;          // by the last Write() that succeeded
};

// Opens the product's journal with logs and snapshot on `disk`, in the directory `work_dir`, which
// is made if missing. `disk` must outlive the journal. Has the errors of OpenLogJournal().
absl::StatusOr<std::unique_ptr<control::Journal>> OpenDiskJournal(const std::string& work_dir,
                                                                  Disk& disk);

}  // namespace penstock::simulator
