// SPDX-License-Identifier: Apache-2.0
// A dispatcher's core in this thread, with a clock that the test sets, and the state that a restart
// would find.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/dispatcher/core.h"
#include "control/journal/changes_proto.h"
#include "control/journal/joined_pieces.h"
#include "control/state/format.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/fixed_tokens.h"
#include "tests/control/dispatcher/inbox.h"
#include "tests/releases/first_format.h"

namespace penstock::control {

// A journal that makes each record durable at once and reads it back at once. Each snapshot must be
// the state of its record. Until another format is finalised, the release before must be able to
// read each record and snapshot.
class ReplayedJournal final : public Journal {
 public:
  // `before`: what the core finds when it opens the journal.
  // `newest`: raised to the newest format of a change that is written.
  ReplayedJournal(State& recovered, uint32_t& newest, Recovered before = {})
      : recovered_(recovered), newest_(newest), before_(std::move(before)) {}
  Recovered TakeRecovered() override { return std::move(before_); }
  absl::Status Start(Durable durable) override {
    durable_ = std::move(durable);
    return absl::OkStatus();
  }
  void Append(uint64_t sequence, std::string record) override {
    const absl::Status applied = ApplyRecord(record, recovered_, [&](const Change& change) {
      newest_ = std::max(newest_, FormatOf(change));
    });
    EXPECT_TRUE(applied.ok()) << applied << DescribeRecord(record);
    if (recovered_.format == kFirstFormat) {
      const absl::Status read = first_format::Read(record);
      EXPECT_TRUE(read.ok()) << read << DescribeRecord(record);
    }
    records_.emplace_back(sequence, std::move(record));
    if (durable_) durable_(sequence);
  }
  void Snapshot(uint64_t sequence, SnapshotChanges changes) override {
    Merge(std::move(changes), snapshot_);
    if (snapshot_.joined) {
      ASSERT_TRUE(JoinPieces(snapshot_).ok());
    }
    std::vector<std::string> pieces;
    for (const auto& [key, piece] : snapshot_.pieces)
      if (piece.has_value()) pieces.push_back(*piece);
    State state = DecodeState(pieces).value();
    EXPECT_EQ(snapshot_.joined, state.format == kFirstFormat);
    if (snapshot_.joined) {
      const absl::Status read = first_format::ReadSnapshot(pieces);
      EXPECT_TRUE(read.ok()) << read;
    }
    while (!records_.empty() && records_.front().first <= sequence) records_.pop_front();
    for (const auto& [number, record] : records_) EXPECT_TRUE(ApplyRecord(record, state).ok());
    const State as_recovered = DecodeState(EncodeState(recovered_).value()).value();
    EXPECT_EQ(EncodeState(state), EncodeState(as_recovered)) << "the snapshot of " << sequence;
    recovered_ = std::move(state);
  }
  absl::Status WaitDurable(uint64_t /*sequence*/) override { return absl::OkStatus(); }
  absl::Status status() const override { return absl::OkStatus(); }
  std::string name() const override { return "replayed"; }

 private:
  State& recovered_;
  uint32_t& newest_;
  Recovered before_;
  SnapshotChanges snapshot_;                              // all snapshots, merged
  std::deque<std::pair<uint64_t, std::string>> records_;  // after the last one
  Durable durable_;
};

class CoreTest : public ::testing::Test {
 protected:
  struct Reader {
    std::shared_ptr<Inbox<ClientStreamWriter, ClientDown>> inbox =
        std::make_shared<Inbox<ClientStreamWriter, ClientDown>>();
    std::shared_ptr<ClientPeer> peer;
  };
  struct Worker {
    std::shared_ptr<Inbox<WorkerStreamWriter, WorkerDown>> inbox =
        std::make_shared<Inbox<WorkerStreamWriter, WorkerDown>>();
    std::shared_ptr<WorkerPeer> peer;
  };

  void Start(CoreOptions options = {}) {
    recovered_ = State();
    Open(std::move(options), {});
  }
  // Restarts the dispatcher from its journal.
  void Reopen(CoreOptions options = {}) {
    Recovered before;
    before.snapshot = EncodeState(recovered_).value();
    before.snapshot_sequence = core_->sequence();
    core_.reset();
    Open(std::move(options), std::move(before));
  }
  void Open(CoreOptions options, Recovered before) {
    options.now = [this] { return now_; };
    options.random = [this] { return ++random_; };
    options.job_tokens = FixedTokens;
    options.port_refuses = [](const std::string&) { return false; };
    options.events = events_;
    if (const char* format = std::getenv("PENSTOCK_TEST_FORMAT"))
      options.new_format = static_cast<uint32_t>(std::atoi(format));
    options.per_snapshot.records = 50;
    options.snapshot_bytes_at_once = 500;  // a snapshot takes several transactions
    options.check_kept = [] { return true; };
    options.placings = &placings_;
    core_ = Core::Open(std::move(options), std::make_unique<ReplayedJournal>(
                                               recovered_, newest_written_, std::move(before)))
                .value();
  }
  // Registers a dataset of one source with this many splits.
  std::string Register(uint64_t fingerprint, int64_t splits = 100) {
    std::string id;
    core_->RegisterDataset({.definition = "definition",
                            .summary = {.fingerprint = fingerprint,
                                        .cardinality = splits,
                                        .nodes = {{"Range#0", fingerprint}},
                                        .plan = {{.node = "Range#0", .count = splits}}}},
                           [&](const auto& answer) { id = answer->dataset_id; });
    return id;
  }
  JobAnswer Job(const std::string& name, const std::string& dataset, const JobTerms& terms) {
    JobAnswer job;
    core_->GetOrCreateJob({.name = name, .dataset_id = dataset, .terms = terms},
                          [&](const auto& answer) { job = answer.value(); });
    return job;
  }
  Worker Work(uint64_t id, int32_t permits = 1) {
    Worker worker;
    worker.peer = core_->OpenWorker(worker.inbox);
    core_->OnMessage(worker.peer, WorkerHello{.worker = WorkerId(id),
                                              .address = absl::StrCat("worker", id),
                                              .permits = permits});
    return worker;
  }
  // `state`: of partition 1.
  Reader Come(const JobAnswer& job, int64_t repetition, uint64_t client,
              std::optional<IndexSet> state = std::nullopt, uint64_t incarnation = 1) {
    Reader reader;
    reader.peer = core_->OpenClient(reader.inbox);
    ClientHello hello{.job = job.job,
                      .repetition = repetition,
                      .client = ClientId(client),
                      .incarnation = Incarnation(incarnation),
                      .state = std::nullopt,
                      .token = job.token};
    if (state) hello.state = {{PartitionId(1), *std::move(state)}};
    core_->OnMessage(reader.peer, std::move(hello));
    return reader;
  }
  void Go(Reader& reader, Leave leave = {}) {
    core_->OnMessage(reader.peer, std::move(leave));
    EXPECT_TRUE(reader.inbox->Take<Left>().has_value());
    core_->OnClosed(reader.peer);
    core_->Sweep();
  }
  // Lets time pass in steps. The dispatcher takes one long step for a suspension of its own
  // process.
  void Pass(absl::Duration time, absl::Duration step = absl::Seconds(1)) {
    for (const absl::Time end = now_ + time; now_ < end;) {
      now_ += step;
      core_->Sweep();
    }
  }
  size_t SnapshotSize() const { return SnapshotBytes(EncodeState(recovered_).value()); }
  DispatcherStatus Status() const {
    DispatcherStatus status;
    core_->GetStatus([&](const auto& answer) { status = *answer; });
    return status;
  }

  absl::Time now_ = absl::UnixEpoch();
  uint64_t random_ = 0;
  const std::shared_ptr<CapturedEvents> events_ = CapturedEvents::Make();
  State recovered_;
  uint32_t newest_written_ = 0;  // the newest format of a change in the journal
  uint64_t placings_ = 0;        // CoreOptions::placings
  std::unique_ptr<Core> core_;
};

}  // namespace penstock::control
