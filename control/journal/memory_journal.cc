// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "control/journal/journal.h"
#include "control/sync/mutex.h"
#include "penstock/check.h"

namespace penstock::control {
namespace {

class MemoryJournal final : public Journal {
 public:
  Recovered TakeRecovered() override { return {}; }
  absl::Status Start(Durable durable) override {
    durable_ = std::move(durable);
    return absl::OkStatus();
  }
  void Append(uint64_t sequence, std::string /*record*/) override {
    {
      MutexLock lock(mu_);
      PENSTOCK_CHECK(sequence == last_ + 1);
      last_ = sequence;
    }
    if (durable_) durable_(sequence);
  }
  void Snapshot(uint64_t /*sequence*/, SnapshotChanges /*changes*/) override {}
  absl::Status WaitDurable(uint64_t /*sequence*/) override { return absl::OkStatus(); }
  absl::Status status() const override { return absl::OkStatus(); }
  std::string name() const override { return "memory"; }

 private:
  Mutex mu_;
  uint64_t last_ GUARDED_BY(mu_) = 0;
  Durable durable_;  // constant after Start
};

}  // namespace

std::unique_ptr<Journal> OpenMemoryJournal() {
  return std::make_unique<MemoryJournal>();
}

}  // namespace penstock::control
