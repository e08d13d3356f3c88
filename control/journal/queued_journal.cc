// SPDX-License-Identifier: Apache-2.0
#include "control/journal/queued_journal.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock::control {
namespace {

class QueuedJournal final : public Journal {
 public:
  QueuedJournal(std::string name, Recovered recovered, std::unique_ptr<RecordStore> store)
      : name_(std::move(name)),
        recovered_(std::move(recovered)),
        store_(std::move(store)),
        appended_(recovered_.last_sequence()),
        durable_sequence_(appended_) {}

  ~QueuedJournal() override {
    {
      MutexLock lock(mu_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    if (writer_.joinable()) writer_.join();
    store_.reset();  // its threads call this object
  }

  Recovered TakeRecovered() override { return std::move(recovered_); }

  absl::Status Start(Durable durable) override {
    durable_ = std::move(durable);
    RETURN_IF_ERROR(store_->Start(name(), [this](const absl::Status& why) { OnStoreLost(why); }));
    ASSIGN_OR_RETURN(writer_, StartThread(name(), [this] { Write(); }));
    return absl::OkStatus();
  }

  void Append(uint64_t sequence, std::string record) override {
    MutexLock lock(mu_);
    PENSTOCK_CHECK(sequence == appended_ + 1);
    appended_ = sequence;
    queue_.push_back({.record = {.sequence = sequence, .bytes = std::move(record)}});
    changed_.NotifyAll();
  }

  void Snapshot(uint64_t sequence, SnapshotChanges changes) override {
    MutexLock lock(mu_);
    PENSTOCK_CHECK(sequence <= appended_);
    queue_.push_back(
        {.record = {.sequence = sequence, .bytes = {}}, .snapshot = std::move(changes)});
    changed_.NotifyAll();
  }

  absl::Status WaitDurable(uint64_t sequence) override {
    MutexLock lock(mu_);
    changed_.Wait(lock,
                  [&]() REQUIRES(mu_) { return durable_sequence_ >= sequence || !status_.ok(); });
    return durable_sequence_ >= sequence ? absl::OkStatus() : status_;
  }

  absl::Status status() const override {
    MutexLock lock(mu_);
    return status_;
  }

  std::string name() const override { return name_; }

 private:
  struct Item {
    Recovered::Record record;  // of a snapshot: only the sequence
    std::optional<SnapshotChanges> snapshot = {};
  };

  // Runs on the writer's thread.
  void Write() {
    while (true) {
      absl::StatusOr<std::vector<Item>> group = TakeGroup();
      if (!group.ok()) return Fail(group.status());
      if (group->empty()) return;
      Item& first = group->front();
      const absl::Status written =
          first.snapshot.has_value()
              ? store_->WriteSnapshot(first.record.sequence, *std::move(first.snapshot))
              : WriteRecords(*std::move(group));
      if (!written.ok()) return Fail(written);
    }
  }

  absl::Status WriteRecords(std::vector<Item> group) {
    std::vector<Recovered::Record> records;
    records.reserve(group.size());
    for (Item& item : group) records.push_back(std::move(item.record));
    RETURN_IF_ERROR(store_->WriteRecords(records));
    const uint64_t last = records.back().sequence;
    bool idle = false;
    {
      MutexLock lock(mu_);
      durable_sequence_ = last;
      idle = queue_.empty();
      changed_.NotifyAll();
    }
    durable_(last);
    return idle ? store_->OnIdle() : absl::OkStatus();
  }

  void Fail(const absl::Status& status) {
    {
      MutexLock lock(mu_);
      status_ = status;
      changed_.NotifyAll();
    }
    durable_(status);
  }

  // Returns all waiting items before the next snapshot or, if the first item is a snapshot, that
  // item. Empty if the writer must stop. The error of OnStoreLost(), if it was called.
  absl::StatusOr<std::vector<Item>> TakeGroup() {
    MutexLock lock(mu_);
    changed_.Wait(
        lock, [this]() REQUIRES(mu_) { return stopping_ || !queue_.empty() || !store_lost_.ok(); });
    RETURN_IF_ERROR(store_lost_);
    auto end = std::find_if(queue_.begin(), queue_.end(),
                            [](const Item& item) { return item.snapshot.has_value(); });
    if (end == queue_.begin() && end != queue_.end()) ++end;
    std::vector<Item> group(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
    queue_.erase(queue_.begin(), end);
    return group;
  }

  // Called on a thread of the store. The writer's thread then fails.
  void OnStoreLost(const absl::Status& why) {
    MutexLock lock(mu_);
    store_lost_ = why;
    changed_.NotifyAll();
  }

  const std::string name_;
  Recovered recovered_;
  Durable durable_;                     // constant after Start
  std::unique_ptr<RecordStore> store_;  // used only by the writer thread, constant until the end
  Thread writer_;

  mutable Mutex mu_;
  Condition changed_;
  std::deque<Item> queue_ GUARDED_BY(mu_);
  uint64_t appended_ GUARDED_BY(mu_);
  uint64_t durable_sequence_ GUARDED_BY(mu_);
  absl::Status status_ GUARDED_BY(mu_);
  absl::Status store_lost_ GUARDED_BY(mu_);
  bool stopping_ GUARDED_BY(mu_) = false;
};

}  // namespace

std::unique_ptr<Journal> MakeQueuedJournal(std::string name, Recovered recovered,
                                           std::unique_ptr<RecordStore> store) {
  return std::make_unique<QueuedJournal>(std::move(name), std::move(recovered), std::move(store));
}

}  // namespace penstock::control
