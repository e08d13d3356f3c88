// SPDX-License-Identifier: Apache-2.0
#include "control/journal/snapshot_writer.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_format.h"
#include "control/journal/joined_pieces.h"
#include "control/observe/event_log.h"
#include "control/observe/metrics.h"
#include "include/status_macros.h"

namespace penstock::control {

void Merge(SnapshotChanges changes, SnapshotChanges& to) {
  if (changes.whole) return void(to = std::move(changes));
  changes.pieces.merge(std::move(to.pieces));  // keeps the later piece of each key
  to.pieces = std::move(changes.pieces);
}

SnapshotChanges WholeSnapshot(std::vector<std::string> pieces) {
  SnapshotChanges changes{.whole = true};
  for (size_t i = 0; i < pieces.size(); ++i)
    changes.pieces.emplace(absl::StrFormat("%020d", i), std::move(pieces[i]));
  return changes;
}

static Counter& FailedSnapshots() {
  static Counter& failed = ProcessMetrics().GetCounter(
      "penstock_journal_snapshots_failed_total",
      "Snapshots of the journal that could not be written. The log goes on without them.");
  return failed;
}

void ReportFailedSnapshot(const absl::Status& why) {
  FailedSnapshots().Add();
  StderrEventLog()->Write({"snapshot_failed", {{"reason", std::string(why.message())}}});
}

SnapshotWriter::~SnapshotWriter() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status SnapshotWriter::Start(const std::string& name, Written written, Lost lost) {
  FailedSnapshots();  // is printed from now on, and needs no resource later
  written_ = std::move(written);
  lost_ = std::move(lost);
  ASSIGN_OR_RETURN(thread_, StartThread(name, [this] { Run(); }));
  return absl::OkStatus();
}

void SnapshotWriter::Write(uint64_t sequence, SnapshotChanges changes) {
  MutexLock lock(mu_);
  if (ended_) return;
  Merge(std::move(changes), waiting_);
  sequence_ = sequence;
  asked_ = true;
  changed_.NotifyAll();
}

void SnapshotWriter::Run() {
  MutexLock lock(mu_);
  while (true) {
    changed_.Wait(lock, [this]() REQUIRES(mu_) { return stopping_ || asked_; });
    if (!asked_) return;
    asked_ = false;
    const uint64_t sequence = sequence_;
    SnapshotChanges changes = std::exchange(waiting_, {});
    lock.unlock();
    const bool goes_on = WriteOne(sequence, std::move(changes));
    lock.lock();
    if (goes_on) continue;
    ended_ = true;
    waiting_ = {};
    return;
  }
}

bool SnapshotWriter::WriteOne(uint64_t sequence, SnapshotChanges changes) {
  absl::Status written = changes.joined ? JoinPieces(changes) : absl::OkStatus();
  if (written.ok()) written = store_->Write(sequence, changes);
  if (!written.ok()) {
    ReportFailedSnapshot(Annotate(written, "while writing a snapshot"));
    if (!absl::IsResourceExhausted(written)) return false;
    if (changes.joined) return true;  // the next snapshot is whole too
    MutexLock lock(mu_);
    Merge(std::exchange(waiting_, std::move(changes)), waiting_);
    return true;
  }
  if (absl::Status there = store_->CheckThere(); !there.ok()) {
    lost_(Annotate(there, "the logs are kept; start again"));
    return false;
  }
  if (absl::Status removed = written_(sequence); !removed.ok()) ReportFailedSnapshot(removed);
  return true;
}

}  // namespace penstock::control
