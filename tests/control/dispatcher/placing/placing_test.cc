// SPDX-License-Identifier: Apache-2.0
// The data about workers and partitions that the dispatcher keeps, so that they need not be
// computed again at each event. The fixture sets CoreOptions::check_kept: at each event, these data
// are compared with what would be computed. A difference ends the job with the event
// "invariant_broken".
#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/control/dispatcher/core_fixture.h"

namespace penstock::control {
namespace {

class Placing : public CoreTest {
 protected:
  int Events(std::string_view name) const {
    const std::vector<Event> all = events_->All();
    return static_cast<int>(
        std::ranges::count_if(all, [&](const Event& event) { return event.name == name; }));
  }
  // One job with one reader, and one worker that runs its partition. Nothing is left to place.
  void BeginOne() {
    Start();
    job_ = Job("job", Register(11), {.mode = ShardingPolicy::kDynamic});
    worker_ = Work(1);
    reader_ = Come(job_, 0, 5);
    of_ = worker_.inbox->Take<Assign>().value().of;
    Progress(1);
    placings_ = 0;
  }
  void Progress(Index index) {
    core_->OnMessage(worker_.peer, Bookmark{of_, index, "position", {}});
  }
  void Deliver(Index end) {
    core_->OnMessage(reader_.peer, Report{{{.partition = of_.partition,
                                            .placement = of_.placement,
                                            .delivered = IndexSet::Of(0, end)}}});
  }

  JobAnswer job_;
  Worker worker_;
  Reader reader_;
  PlacedPartition of_;
};

TEST_F(Placing, IsNotTriedForABookmarkAReportOrASplit) {
  BeginOne();
  for (Index index = 2; index < 20; ++index) {
    core_->OnMessage(worker_.peer, SplitRequest{of_, 0, 0, index - 2, 1});
    Deliver(index);
    Progress(index);
    core_->OnMessage(worker_.peer, WorkerHeartbeat{});
    core_->OnMessage(reader_.peer, ClientHeartbeat{});
  }
  // The first split begins a pass, and then there might be more to open.
  EXPECT_LE(placings_, 1u);
  EXPECT_GE(recovered_.iterations.begin()->second.record.partitions[0].bookmarks.back().index, 19);
}

TEST_F(Placing, IsTriedAgainWhenAWorkerComes) {
  BeginOne();
  const Worker second = Work(2);
  EXPECT_GE(placings_, 1u);
  EXPECT_TRUE(second.inbox->Take<Assign>().has_value());  // of one more partition
}

TEST_F(Placing, IsTriedOnlyForTheAnswerThatCompletesAFence) {
  BeginOne();
  Reader others[3] = {Come(job_, 0, 6), Come(job_, 0, 7), Come(job_, 0, 8)};
  core_->OnMessage(worker_.peer, WorkerLeave{});
  const Worker next = Work(2);
  Deliver(1);  // settles what the worker changed
  placings_ = 0;
  for (Reader& reader : others) {
    const auto fence = reader.inbox->Take<Fence>();
    ASSERT_TRUE(fence.has_value());
    core_->OnMessage(reader.peer, FenceAnswer{{fence->partition, fence->placement, {}, {}}});
    EXPECT_EQ(placings_, 0u);
    EXPECT_FALSE(next.inbox->Take<Assign>().has_value());
  }
  const auto fence = reader_.inbox->Take<Fence>();
  ASSERT_TRUE(fence.has_value());
  core_->OnMessage(reader_.peer, FenceAnswer{{fence->partition, fence->placement, {}, {}}});
  EXPECT_GE(placings_, 1u);
  EXPECT_TRUE(next.inbox->Take<Assign>().has_value());
}

// --- Random events -----------------------------------------------------------------

// Workers come, drain, leave and fail partitions; readers come, leave and reconnect; all of them
// answer late, or early, or not at all.
class RandomPlacing : public Placing {
 protected:
  struct Run {
    uint64_t worker = 0;
    PlacedPartition of;
    Index index = 0;
    int64_t pass = 0;
    int64_t splits = 0;  // of the pass
  };
  struct Joined {
    Reader reader;
    size_t job = 0;
    int64_t repetition = 0;
    uint64_t client = 0;
    std::vector<FenceAnswer> fences;
  };

  size_t Draw(size_t below) { return below == 0 ? 0 : random_engine_() % below; }

  void BeginAll(uint64_t seed) {
    random_engine_.seed(seed);
    CoreOptions options;
    if (seed % 3 == 0) options.quotas = Quotas({.partitions = 4});
    Start(std::move(options));
    const std::string dataset = Register(11, 20);
    JobShare share;
    if (recovered_.format >= kSharesFormat) {
      share = {.weight = 1 + static_cast<int64_t>(seed % 2),
               .priority = static_cast<int64_t>(seed / 2 % 2)};
    }
    jobs_ = {Job("dynamic", dataset, {.mode = ShardingPolicy::kDynamic, .share = share}),
             Job("whole", dataset, {.mode = ShardingPolicy::kOff}),
             Job("committed", dataset,
                 {.mode = ShardingPolicy::kDynamic, .ack_mode = AckMode::kOnCommit})};
    repetitions_.assign(jobs_.size(), 0);
    workers_.clear();
    readers_.clear();
    runs_.clear();
  }
  void JoinWorker() {
    Worker worker;
    worker.peer = core_->OpenWorker(worker.inbox);
    const uint64_t id = ++last_id_;
    core_->OnMessage(worker.peer, WorkerHello{.worker = WorkerId(id),
                                              .address = absl::StrCat("worker", id),
                                              .permits = static_cast<int32_t>(1 + Draw(3))});
    workers_[id] = worker;
  }
  void JoinReader() {
    const size_t job = Draw(jobs_.size());
    const uint64_t client = ++last_id_;
    readers_.push_back(
        {Come(jobs_[job], repetitions_[job], client), job, repetitions_[job], client, {}});
  }
  void LeaveWorker(bool drains) {
    if (workers_.empty()) return;
    const auto worker = std::next(workers_.begin(), static_cast<ptrdiff_t>(Draw(workers_.size())));
    if (drains) return core_->OnMessage(worker->second.peer, Drain{});
    core_->OnMessage(worker->second.peer, WorkerLeave{});
    std::erase_if(runs_, [&](const Run& run) { return run.worker == worker->first; });
    workers_.erase(worker);
  }
  void ReconnectWorker() {
    if (workers_.empty()) return;
    const auto entry = std::next(workers_.begin(), static_cast<ptrdiff_t>(Draw(workers_.size())));
    auto& [id, worker] = *entry;
    core_->OnClosed(worker.peer);
    Worker again;
    again.peer = core_->OpenWorker(again.inbox);
    WorkerHello hello{.worker = WorkerId(id), .address = absl::StrCat("worker", id), .permits = 2};
    for (const Run& run : runs_)
      if (run.worker == id && Draw(4) > 0) hello.held.push_back(run.of);
    std::erase_if(runs_, [&, its = id](const Run& run) {
      return run.worker == its && std::ranges::count(hello.held, run.of) == 0;
    });
    core_->OnMessage(again.peer, std::move(hello));
    worker = again;
  }
  void LeaveReader() {
    if (readers_.empty()) return;
    const auto reader = readers_.begin() + static_cast<ptrdiff_t>(Draw(readers_.size()));
    core_->OnMessage(reader->reader.peer, Leave{});
    core_->OnClosed(reader->reader.peer);
    readers_.erase(reader);
  }
  void ReconnectReader() {
    if (readers_.empty()) return;
    Joined& reader = readers_[Draw(readers_.size())];
    core_->OnClosed(reader.reader.peer);
    reader.fences.clear();
    reader.reader = Come(jobs_[reader.job], reader.repetition, reader.client);
  }
  void ActOn(Run& run) {
    Worker& worker = workers_.at(run.worker);
    switch (Draw(8)) {
      case 0: {
        const PlacedPartition of = run.of;
        core_->OnMessage(worker.peer, Ended{of, run.index});
        std::erase_if(runs_, [&](const Run& other) { return other.of == of; });
        return;
      }
      case 1:
        if (Draw(4) > 0) return;
        return core_->OnMessage(worker.peer,
                                PartitionFailed{run.of, absl::UnavailableError("no disk")});
      case 2:
      case 3:
      case 4:
        return core_->OnMessage(worker.peer, SplitRequest{run.of, 0, run.pass, run.splits, 4});
      default:
        return core_->OnMessage(
            worker.peer,
            Bookmark{run.of, ++run.index, absl::StrCat(run.pass), {{0, run.pass, run.splits}}});
    }
  }
  void Report() {
    if (readers_.empty() || runs_.empty()) return;
    const Joined& reader = readers_[Draw(readers_.size())];
    const Run& run = runs_[Draw(runs_.size())];
    if (run.of.iteration != reader.reader.peer->iteration) return;
    core_->OnMessage(reader.reader.peer,
                     control::Report{{{.partition = run.of.partition,
                                       .placement = run.of.placement,
                                       .delivered = IndexSet::Of(0, run.index)}}});
  }
  void Answer() {
    for (Joined& reader : readers_) {
      if (Draw(3) == 0) continue;
      for (const FenceAnswer& answer : std::exchange(reader.fences, {}))
        core_->OnMessage(reader.reader.peer, answer);
    }
  }
  void Begin(uint64_t worker, const Assign& assign) {
    Run run{worker, assign.of, assign.bookmark_index};
    if (!absl::SimpleAtoi(assign.bookmark, &run.pass)) run.pass = 0;
    for (const SplitRun& given : assign.splits) {
      if (given.repetition == run.pass)
        run.splits = given.first_ordinal + static_cast<int64_t>(given.numbers.size());
    }
    runs_.push_back(run);
  }
  void Hear(uint64_t worker, const WorkerDown& message) {
    if (const auto* assign = std::get_if<Assign>(&message)) return Begin(worker, *assign);
    if (const auto* gone = std::get_if<Unassign>(&message)) {
      std::erase_if(runs_,
                    [&](const Run& run) { return run.worker == worker && run.of == gone->of; });
    }
    const auto* splits = std::get_if<Splits>(&message);
    if (splits == nullptr) return;
    const auto run = std::ranges::find(runs_, splits->of, &Run::of);
    if (run == runs_.end() || splits->run.repetition != run->pass) return;
    run->splits = splits->run.first_ordinal + static_cast<int64_t>(splits->run.numbers.size());
    if (splits->run.no_more) {
      ++run->pass;
      run->splits = 0;
    }
  }
  // Takes the messages that the dispatcher sent.
  void Hear() {
    for (auto& [id, worker] : workers_) {
      for (; !worker.inbox->messages.empty(); worker.inbox->messages.pop_front())
        Hear(id, worker.inbox->messages.front());
    }
    for (Joined& reader : readers_) {
      for (auto& messages = reader.reader.inbox->messages; !messages.empty();
           messages.pop_front()) {
        if (const auto* fence = std::get_if<Fence>(&messages.front()))
          reader.fences.push_back({{fence->partition, fence->placement, {}, {}}});
        if (std::holds_alternative<End>(messages.front()))
          repetitions_[reader.job] = std::max(repetitions_[reader.job], reader.repetition + 1);
      }
    }
    std::erase_if(readers_,
                  [](const Joined& its) { return its.reader.inbox->finished.has_value(); });
  }
  void Step() {
    switch (Draw(16)) {
      case 0:
        return JoinWorker();
      case 1:
        return LeaveWorker(/*drains=*/Draw(3) == 0);
      case 2:
        return ReconnectWorker();
      case 3:
        return JoinReader();
      case 4:
        return Draw(2) == 0 ? LeaveReader() : ReconnectReader();
      case 5:
        now_ += absl::Milliseconds(100);
        return core_->Sweep();
      case 6:
      case 7:
        return Report();
      case 8:
      case 9:
        return Answer();
      default:
        if (!runs_.empty()) ActOn(runs_[Draw(runs_.size())]);
    }
  }

  std::mt19937_64 random_engine_;
  uint64_t last_id_ = 0;
  std::vector<JobAnswer> jobs_;
  std::vector<int64_t> repetitions_;
  std::map<uint64_t, Worker> workers_;
  std::vector<Joined> readers_;
  std::vector<Run> runs_;
};

TEST_F(RandomPlacing, WhatIsKeptIsWhatWouldBeComputed) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    BeginAll(seed);
    for (int step = 0; step < 400; ++step) {
      Step();
      Hear();
      ASSERT_TRUE(std::ranges::none_of(recovered_.iterations,
                                       [](const auto& entry) {
                                         return entry.second.failure &&
                                                absl::IsInternal(*entry.second.failure);
                                       }))
          << "step " << step;
    }
  }
  EXPECT_EQ(Events("invariant_broken"), 0);
  EXPECT_GT(Events("assigned"), 300);
  EXPECT_GT(Events("relieved"), 0);
  EXPECT_GT(Events("partition_failed"), 0);
}

}  // namespace
}  // namespace penstock::control
