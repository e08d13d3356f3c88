// SPDX-License-Identifier: Apache-2.0
// What stays of finished iterations: how much, and what those are told who come late.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/dispatcher/core.h"
#include "control/journal/changes_proto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/inbox.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

constexpr Index kElements = 100;
constexpr PartitionId kOne{1};

// Durable at once, and read back at once: `recovered` is what a restart would find.
class ReplayedJournal final : public Journal {
 public:
  explicit ReplayedJournal(State& recovered) : recovered_(recovered) {}
  Recovered TakeRecovered() override { return {}; }
  void Start(Durable durable) override { durable_ = std::move(durable); }
  void Append(uint64_t sequence, std::string record) override {
    const absl::Status applied = ApplyRecord(record, recovered_);
    EXPECT_TRUE(applied.ok()) << applied << DescribeRecord(record);
    if (durable_) durable_(sequence);
  }
  void Snapshot(uint64_t /*sequence*/, std::vector<std::string> pieces) override {
    recovered_ = DecodeState(pieces).value();
  }
  absl::Status WaitDurable(uint64_t /*sequence*/) override { return absl::OkStatus(); }
  absl::Status status() const override { return absl::OkStatus(); }
  std::string name() const override { return "replayed"; }

 private:
  State& recovered_;
  Durable durable_;
};

struct Reader {
  std::shared_ptr<Inbox<ClientOutlet, ClientDown>> told =
      std::make_shared<Inbox<ClientOutlet, ClientDown>>();
  std::shared_ptr<ClientPeer> peer;
};

class PastIterations : public ::testing::Test {
 protected:
  void Begin(Keep keep) {
    CoreOptions options;
    options.now = [this] { return now_; };
    options.random = [this] { return ++random_; };
    options.port_refuses = [](const std::string&) { return false; };
    options.events = CapturedEvents::Make();
    options.records_per_snapshot = 50;
    core_ = Core::Open(std::move(options), std::make_unique<ReplayedJournal>(recovered_)).value();
    std::string dataset;
    core_->RegisterDataset({.definition = "definition",
                            .summary = {.fingerprint = 11,
                                        .cardinality = kElements,
                                        .nodes = {{"Range#0", 1}},
                                        .plan = {{.node = "Range#0", .count = kElements}}}},
                           [&](const auto& answer) { dataset = answer->dataset_id; });
    core_->GetOrCreateJob({.name = "job",
                           .dataset_id = dataset,
                           .terms = {.mode = ShardingPolicy::kOff, .keep = keep}},
                          [this](const auto& answer) { job_ = *answer; });
    worker_ = core_->OpenWorker(worker_told_);
    core_->OnMessage(worker_, WorkerHello{.worker = WorkerId(1), .address = "worker"});
  }

  Reader Come(int64_t repetition, uint64_t client, std::optional<IndexSet> state = std::nullopt,
              uint64_t incarnation = 1) {
    Reader reader;
    reader.peer = core_->OpenClient(reader.told);
    ClientHello hello{.job = job_.job,
                      .repetition = repetition,
                      .client = ClientId(client),
                      .incarnation = Incarnation(incarnation),
                      .token = job_.token};
    if (state) hello.state = {{kOne, *std::move(state)}};
    core_->OnMessage(reader.peer, std::move(hello));
    return reader;
  }
  // Every `of`th element, from `first` on.
  static IndexSet Part(Index first, Index of) {
    IndexSet part;
    for (Index i = first; i < kElements; i += of) part.Add(i);
    return part;
  }
  // `readers` read it to its end and go.
  void Epoch(int64_t repetition, uint64_t readers) {
    std::vector<Reader> all;
    for (uint64_t r = 0; r < readers; ++r) all.push_back(Come(repetition, r + 1));
    const auto assign = worker_told_->Take<Assign>();
    ASSERT_TRUE(assign.has_value());
    core_->OnMessage(worker_, Ended{assign->of, kElements});
    for (uint64_t r = 0; r < readers; ++r) {
      core_->OnMessage(all[r].peer, Report{{{.partition = kOne,
                                             .placement = assign->of.placement,
                                             .taken = Part(static_cast<Index>(r),
                                                           static_cast<Index>(readers))}}});
    }
    for (uint64_t r = 0; r < readers; ++r) {
      const IndexSet part = Part(static_cast<Index>(r), static_cast<Index>(readers));
      core_->OnMessage(all[r].peer, Commit{repetition + 1, {{repetition, {{kOne, part}}}}});
      EXPECT_TRUE(all[r].told->Take<End>().has_value());
    }
    for (Reader& reader : all) Go(reader);
  }
  void Go(Reader& reader) {
    core_->OnMessage(reader.peer, Leave{});
    EXPECT_TRUE(reader.told->Take<Left>().has_value());
    core_->OnClosed(reader.peer);
    core_->Sweep();
  }
  size_t Bytes() const { return SnapshotBytes(EncodeState(recovered_).value()); }
  DispatcherStatus Status() const {
    DispatcherStatus status;
    core_->GetStatus([&](const auto& answer) { status = *answer; });
    return status;
  }

  absl::Time now_ = absl::UnixEpoch();
  uint64_t random_ = 0;
  State recovered_;
  std::unique_ptr<Core> core_;
  JobAnswer job_;
  std::shared_ptr<Inbox<WorkerOutlet, WorkerDown>> worker_told_ =
      std::make_shared<Inbox<WorkerOutlet, WorkerDown>>();
  std::shared_ptr<WorkerPeer> worker_;
};

TEST_F(PastIterations, AreEndsAndCountsHoweverTheirReadersSharedThem) {
  for (const Keep keep : {Keep::kTaken, Keep::kCommitted}) {
    recovered_ = State();
    Begin(keep);
    for (int64_t epoch = 0; epoch < 100; ++epoch) Epoch(epoch, 4);
    const size_t after_100 = Bytes();
    for (int64_t epoch = 100; epoch < 200; ++epoch) Epoch(epoch, 4);
    EXPECT_TRUE(recovered_.iterations.empty());
    EXPECT_EQ(recovered_.past.size(), 200u);
    // Where states may be restored, a mark of each reader's history.
    EXPECT_LE(Bytes() - after_100, keep == Keep::kTaken ? 100u * 16 : 100u * (16 + 4 * 40));
    const IterationStatus shown = Status().jobs.at(0).iterations.at(150);
    EXPECT_TRUE(shown.finished);
    EXPECT_EQ(shown.repetition, 150);
    EXPECT_EQ(shown.partitions.at(0).elements, kElements);
    EXPECT_EQ(shown.partitions.at(0).kept, kElements);
  }
}

TEST_F(PastIterations, ToldTheEndIsWhoComesLate) {
  for (const Keep keep : {Keep::kTaken, Keep::kCommitted}) {
    recovered_ = State();
    Begin(keep);
    Epoch(0, 2);
    ASSERT_TRUE(recovered_.iterations.empty());
    Reader same = Come(0, 1);
    EXPECT_TRUE(same.told->Take<Welcome>().has_value());
    EXPECT_TRUE(same.told->Take<End>().has_value());
    Reader late = Come(0, 9, IndexSet());
    EXPECT_TRUE(late.told->Take<Welcome>().has_value());
    EXPECT_TRUE(late.told->Take<End>().has_value());
    core_->Sweep();
    EXPECT_EQ(recovered_.iterations.size(), 1u);  // somebody is connected
    Go(late);
    Go(same);
    EXPECT_TRUE(recovered_.iterations.empty());
    EXPECT_FALSE(worker_told_->Take<Assign>().has_value()) << "nothing of it is read again";
  }
}

TEST_F(PastIterations, AStateIsTheOneThatWasKeptOrRefused) {
  Begin(Keep::kCommitted);
  Epoch(0, 2);
  Reader exact = Come(0, 1, Part(0, 2), /*incarnation=*/2);
  EXPECT_TRUE(exact.told->Take<End>().has_value());
  IndexSet older = Part(0, 2);
  older.Remove(IndexSet::Of(0, 1));
  IndexSet newer = Part(0, 2);
  newer.Add(1);
  const std::vector<std::pair<std::optional<IndexSet>, const char*>> refused = {
      {older, "lacks elements it committed later"},
      {newer, "its state is not the last one"},
      {Part(1, 2), "its state is not the last one"},
      {std::nullopt, "another process has taken up"}};
  for (const auto& [state, why] : refused) {
    const Reader reader = Come(0, 1, state, /*incarnation=*/3);
    ASSERT_TRUE(reader.told->finished.has_value()) << why;
    EXPECT_THAT(std::string(reader.told->finished->message()), HasSubstr(why));
  }
  const Reader stranger = Come(0, 8, Part(0, 2));
  ASSERT_TRUE(stranger.told->finished.has_value());
}

TEST_F(PastIterations, ADeadReaderIsToldSo) {
  Begin(Keep::kTaken);
  const Reader silent = Come(0, 7);
  core_->OnClosed(silent.peer);
  for (int second = 0; second < 70; ++second) {
    now_ += absl::Seconds(1);
    core_->OnMessage(worker_, WorkerHeartbeat{});
    core_->Sweep();
  }
  while (worker_told_->Take<Assign>()) {
  }
  Epoch(0, 2);
  ASSERT_EQ(recovered_.past.size(), 1u);
  const Reader again = Come(0, 7);
  ASSERT_TRUE(again.told->finished.has_value());
  EXPECT_THAT(std::string(again.told->finished->message()), HasSubstr("declared dead"));
}

// A state contains repetitions that were over when it was saved.
TEST_F(PastIterations, ACommitMayNameThem) {
  Begin(Keep::kCommitted);
  Epoch(0, 2);
  Reader next = Come(1, 1);
  core_->OnMessage(next.peer, Commit{2, {{0, {{kOne, Part(0, 2)}}}, {1, {}}}});
  EXPECT_EQ(next.told->Take<Committed>().value_or(Committed()).number, 2);
  core_->OnMessage(next.peer, Commit{3, {{0, {}}, {1, {}}}});
  EXPECT_EQ(next.told->Take<Committed>().value_or(Committed()).number, 3);
  core_->Sweep();
  EXPECT_EQ(recovered_.past.size(), 1u);
}

TEST_F(PastIterations, StatesSayHowMuchEachReaderHad) {
  Begin(Keep::kCommitted);
  Epoch(0, 2);
  SavedRepetition saved;
  core_->GetReading({job_.job, 0}, [&](const auto& answer) { saved = answer.value(); });
  EXPECT_TRUE(saved.finished);
  ASSERT_EQ(saved.partitions.size(), 1u);
  EXPECT_EQ(saved.partitions[0].kept_below, kElements);
  ASSERT_EQ(saved.readers.size(), 2u);
  for (const SavedRepetition::Reader& reader : saved.readers) {
    EXPECT_EQ(reader.kept_count, kElements / 2);
    EXPECT_TRUE(reader.kept.empty());
  }
  EXPECT_EQ(recovered_.past.size(), 1u) << "to ask is to change nothing";
}

}  // namespace
}  // namespace penstock::control
