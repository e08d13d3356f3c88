// SPDX-License-Identifier: Apache-2.0
// Measures the load that a dispatcher can bear, one kind at a time:
//
//   dispatcher_bench heartbeats    # 11,000 a second in this process, as open arrivals
//   dispatcher_bench streams       # CPU of a dispatcher with 250, 500 and 1,000 gRPC streams
//   dispatcher_bench recovery      # from a journal of 10⁶ changes without a snapshot
//
// Heartbeats of workers report a dataset of five nodes. Heartbeats of clients report links to ten
// workers.
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/serving_self.h"
#include "control/dispatcher/core.h"
#include "control/dispatcher/server/job_key.h"
#include "control/journal/changes_proto.h"
#include "control/stub/dispatcher_stub.h"
#include "penstock/server.h"
#include "penstock/status.h"

namespace penstock::bench {
namespace {

// For the names of the messages.
using namespace control;  // NOLINT

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "dispatcher_bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

double SecondsOf(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}
double Now() {
  return SecondsOf(CLOCK_MONOTONIC);
}
void SleepUntil(double when) {
  const double left = when - Now();
  if (left <= 0) return;
  const timespec time{static_cast<time_t>(left),
                      static_cast<long>((left - std::floor(left)) * 1e9)};
  ::nanosleep(&time, nullptr);
}

double Quantile(std::vector<double>& sorted, double q) {
  return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1))];
}

WorkerHeartbeat BeatOfWorker(int64_t counter, const std::vector<IterationId>& iterations) {
  WorkerHeartbeat beat{.counter = static_cast<uint64_t>(counter)};
  DatasetWork& work = beat.work.emplace_back();
  work.dataset_id = "numbers";
  for (int node = 0; node < 5; ++node) {
    work.stats.nodes.push_back({.node = absl::StrCat("Node#", node),
                                .elements = counter * 100,
                                .bytes = counter * 1'000'000,
                                .busy = absl::Milliseconds(counter * 10)});
  }
  for (IterationId iteration : iterations) {
    beat.iterations.push_back({iteration, counter * 100, absl::Milliseconds(counter * 400), 1});
  }
  return beat;
}

ClientHeartbeat BeatOfClient(int64_t counter, int links) {
  ClientHeartbeat beat{.counter = static_cast<uint64_t>(counter)};
  for (int worker = 1; worker <= links; ++worker) {
    beat.links.push_back({.worker = WorkerId(static_cast<uint64_t>(worker)),
                          .protocol = "shm",
                          .reason = "shm: the same host",
                          .open = true,
                          .elements = counter * 10,
                          .bytes = counter * 1'000'000,
                          .credits = 2});
  }
  beat.only_changed_links = counter > 1;  // all of them have changed
  beat.steps = {counter * 100, absl::Milliseconds(counter * 900),
                absl::Milliseconds(counter * 100)};
  return beat;
}

// --- In process ------------------------------------------------------------------------

template <class Down>
class Nowhere final : public StreamWriter<Down> {
 public:
  void Send(Down /*message*/, uint64_t /*sequence*/) override {}
  void Finish(const absl::Status& /*status*/) override {}
};

struct Load {
  int workers = 100;
  int clients = 10'900;
  int jobs = 1000;
  int partitions = 1;  // of each job
  int rate = 11'000;   // heartbeats a second
  double seconds = 15;
};

class InProcess {
 public:
  explicit InProcess(const Load& load) {
    CoreOptions options;
    options.worker_timeout = options.client_timeout = absl::Hours(1);  // longer than the run
    options.now = [] { return absl::Now(); };
    options.random = [this] { return random_(); };
    options.job_tokens = [](uint64_t) { return TokensWith(DrawJobKey()); };
    options.port_refuses = [](const std::string&) { return false; };
    options.events = SilentEventLog();
    auto core = Core::Open(std::move(options), OpenMemoryJournal());
    if (!core.ok()) Fail(core.status());
    core_ = *std::move(core);
    DatasetSummary summary;
    summary.plan.push_back({.node = "Range#0", .count = load.partitions});
    core_->RegisterDataset({.dataset_id = "numbers", .summary = summary}, [](const auto& answer) {
      if (!answer.ok()) Fail(answer.status());
    });
    std::vector<JobAnswer> jobs;
    for (int i = 0; i < load.jobs; ++i) {
      core_->GetOrCreateJob({.name = absl::StrCat("job", i),
                             .dataset_id = "numbers",
                             .terms = {.mode = ShardingPolicy::kDynamic}},
                            [&](const auto& answer) {
                              if (!answer.ok()) Fail(answer.status());
                              jobs.push_back(*answer);
                            });
    }
    for (int i = 0; i < load.workers; ++i) {
      workers_.push_back(core_->OpenWorker(std::make_shared<Nowhere<WorkerDown>>()));
      core_->OnMessage(workers_.back(),
                       WorkerHello{.worker = WorkerId(static_cast<uint64_t>(i + 1)),
                                   .address = absl::StrCat("worker:", i + 1)});
    }
    for (int i = 0; i < load.clients; ++i) {
      const JobAnswer& job = jobs[static_cast<size_t>(i % load.jobs)];
      clients_.push_back(core_->OpenClient(std::make_shared<Nowhere<ClientDown>>()));
      core_->OnMessage(clients_.back(),
                       ClientHello{.job = job.job,
                                   .client = ClientId(static_cast<uint64_t>(i + 1)),
                                   .incarnation = Incarnation(1),
                                   .token = job.token});
    }
  }

  // A heartbeat does not wait for the answers to earlier ones.
  void Run(const Load& load) {
    std::atomic<bool> stop = false;
    std::thread sweeper([&] {  // as in the server
      while (!stop) {
        core_->Sweep();
        SleepUntil(Now() + 0.1);
      }
    });
    std::mt19937_64 random(1);
    std::exponential_distribution<double> gap(load.rate);
    const size_t peers = workers_.size() + clients_.size();
    const auto count = static_cast<size_t>(load.rate * load.seconds);
    std::vector<double> latency;
    latency.reserve(count);
    double cpu = 0, arrives = Now();
    for (size_t i = 0; i < count; ++i) {
      arrives += gap(random);
      SleepUntil(arrives);
      const size_t who = i % peers;
      const auto counter = static_cast<int64_t>(i / peers + 1);
      const double before = SecondsOf(CLOCK_THREAD_CPUTIME_ID);
      if (who < workers_.size()) {
        core_->OnMessage(
            workers_[who],
            BeatOfWorker(counter, {IterationId(who % static_cast<size_t>(load.jobs) + 1)}));
      } else {
        core_->OnMessage(clients_[who - workers_.size()], BeatOfClient(counter, 10));
      }
      cpu += SecondsOf(CLOCK_THREAD_CPUTIME_ID) - before;
      latency.push_back(Now() - arrives);
    }
    stop = true;
    sweeper.join();
    std::sort(latency.begin(), latency.end());
    std::printf(
        "%zu workers, %zu clients, %d heartbeats/s: %.2f us CPU each, p50 %.3f ms, p99 %.3f ms, "
        "max %.1f ms\n",
        workers_.size(), clients_.size(), load.rate, cpu / static_cast<double>(count) * 1e6,
        Quantile(latency, 0.5) * 1e3, Quantile(latency, 0.99) * 1e3, latency.back() * 1e3);
  }

 private:
  std::mt19937_64 random_{7};
  std::unique_ptr<Core> core_;
  std::vector<std::shared_ptr<WorkerPeer>> workers_;
  std::vector<std::shared_ptr<ClientPeer>> clients_;
};

// --- Streams -----------------------------------------------------------------------------

int Serve() {
  auto dispatcher = DispatchServer::Start();
  if (!dispatcher.ok()) Fail(dispatcher.status());
  std::printf("%s\n", (*dispatcher)->target().c_str());
  std::fflush(stdout);
  (*dispatcher)->Join();
  return 0;
}

class StreamedWorker final : public SessionEvents<WorkerDown> {
 public:
  StreamedWorker(DispatcherStub& stub, uint64_t id) {
    session_ = stub.OpenWorkerSession(this);
    session_->Send(WorkerHello{.worker = WorkerId(id), .address = absl::StrCat("worker:", id)});
  }
  ~StreamedWorker() override { session_->Stop(); }
  bool welcome() const { return welcome_; }

  void Beat() {
    sent_ = Now();
    session_->Send(BeatOfWorker(++counter_, {}));
  }
  void OnMessage(WorkerDown message, uint64_t /*sequence*/) override {
    if (std::holds_alternative<WorkerWelcome>(message)) welcome_ = true;
    if (!std::holds_alternative<WorkerHeartbeatAnswer>(message)) return;
    std::lock_guard lock(mu_);
    latency_.push_back(Now() - sent_);
  }
  void OnClosed(const absl::Status& /*status*/) override {}
  std::vector<double> TakeLatency() {
    std::lock_guard lock(mu_);
    return std::exchange(latency_, {});
  }

 private:
  std::unique_ptr<Session<WorkerUp>> session_;
  std::atomic<bool> welcome_ = false;
  std::atomic<double> sent_ = 0;
  int64_t counter_ = 0;
  std::mutex mu_;
  std::vector<double> latency_;  // guarded by mu_
};

void RunStreams(int count, double per_s, double seconds) {
  const auto dispatcher = ServingSelf::Start();
  if (!dispatcher.ok()) Fail(dispatcher.status());
  const auto clock = (*dispatcher)->CpuClock();
  if (!clock.ok()) Fail(clock.status());
  std::vector<std::unique_ptr<DispatcherStub>> stubs;
  std::vector<std::unique_ptr<StreamedWorker>> workers;
  for (int i = 0; i < count; ++i) {
    if (i % 100 == 0) {
      auto stub = DispatcherStub::Make((*dispatcher)->target());
      if (!stub.ok()) Fail(stub.status());
      stubs.push_back(*std::move(stub));
    }
    workers.push_back(
        std::make_unique<StreamedWorker>(*stubs.back(), static_cast<uint64_t>(i + 1)));
  }
  for (const auto& worker : workers) {
    while (!worker->welcome()) SleepUntil(Now() + 0.01);
  }
  SleepUntil(Now() + 1);
  const double cpu = SecondsOf(*clock), begin = Now();
  const auto beats = static_cast<int64_t>(count * per_s * seconds);
  for (int64_t i = 0; i < beats; ++i) {
    SleepUntil(begin + static_cast<double>(i) / (count * per_s));
    workers[static_cast<size_t>(i % count)]->Beat();
  }
  SleepUntil(Now() + 0.2);
  const double used = SecondsOf(*clock) - cpu;
  std::vector<double> latency;
  for (const auto& worker : workers) {
    const std::vector<double> its = worker->TakeLatency();
    latency.insert(latency.end(), its.begin(), its.end());
  }
  if (latency.empty()) Fail(absl::InternalError("no heartbeat was answered"));
  std::sort(latency.begin(), latency.end());
  std::printf(
      "%4d streams, %.0f heartbeats/s: %zu of %lld answered, %.1f us CPU each, p50 %.2f ms, p99 "
      "%.2f ms\n",
      count, count * per_s, latency.size(), static_cast<long long>(beats),
      used / static_cast<double>(beats) * 1e6, Quantile(latency, 0.5) * 1e3,
      Quantile(latency, 0.99) * 1e3);
  std::fflush(stdout);
}

// --- Recovery ------------------------------------------------------------------------------

// Jobs of a hundred partitions. Their bookmarks move, their splits are given out, and their
// trainers commit the elements that they took.
void RunRecovery(int64_t count, const std::string& folder) {
  std::filesystem::remove_all(folder);
  control::State state;
  int64_t changes = 0, bytes = 0;
  {
    auto journal = OpenSqliteJournal(folder);
    if (!journal.ok()) Fail(journal.status());
    (*journal)->TakeRecovered();
    const absl::Status started = (*journal)->Start([](absl::StatusOr<uint64_t> durable) {
      if (!durable.ok()) Fail(durable.status());
    });
    if (!started.ok()) Fail(started);
    uint64_t sequence = 0;
    const auto write = [&](std::vector<Change> record) {
      for (const Change& change : record) state.Apply(change);
      std::string encoded = EncodeChanges(record, state).value();
      changes += static_cast<int64_t>(record.size());
      bytes += static_cast<int64_t>(encoded.size());
      (*journal)->Append(++sequence, std::move(encoded));
      if (sequence % 10'000 == 0) {
        if (absl::Status durable = (*journal)->WaitDurable(sequence); !durable.ok()) Fail(durable);
      }
    };
    constexpr uint64_t kJobs = 20, kPartitions = 100;
    auto dataset = std::make_shared<DatasetRecord>();
    dataset->id = "numbers";
    dataset->definition = std::string(2000, 'd');
    dataset->summary.plan.push_back({.node = "Range#0", .count = int64_t{1} << 40});
    write({LifeBegun{{.life = {.journal = 1, .id = 1, .term = Term(1)}, .begins = 1}},
           DatasetRegistered{dataset}});
    for (uint64_t worker = 1; worker <= 100; ++worker) {
      write({WorkerRegistered{
          {.id = WorkerId(worker), .address = absl::StrCat("worker:", worker), .permits = 8}}});
    }
    for (uint64_t job = 1; job <= kJobs; ++job) {
      write(
          {JobCreated{{.id = JobId(job),
                       .name = absl::StrCat("job", job),
                       .dataset = dataset,
                       .terms = {.mode = ShardingPolicy::kDynamic, .ack_mode = AckMode::kOnCommit},
                       .token = std::string(16, 't')}},
           IterationCreated{IterationId(job), JobId(job), 0, {}},
           IterationAltered{IterationId(job),
                            protocol::ReaderJoined{ClientId(job), Incarnation(1)}}});
      for (uint64_t p = 1; p <= kPartitions; ++p) {
        write({IterationAltered{IterationId(job), protocol::PartitionOpened{PartitionId(p)}},
               IterationAltered{IterationId(job), protocol::PartitionAssigned{
                                                      PartitionId(p), Placement(1), WorkerId(p)}}});
      }
    }
    for (int64_t turn = 0; changes < count; ++turn) {
      for (uint64_t job = 1; job <= kJobs && changes < count; ++job) {
        const PartitionId partition(static_cast<uint64_t>(turn) % kPartitions + 1);
        const IterationId of(job);
        const int64_t round = turn / static_cast<int64_t>(kPartitions);
        write({SplitsGiven{
            {of, partition},
            {.first_ordinal = round * 4, .numbers = {turn, turn + 1, turn + 2, turn + 3}}}});
        write({IterationAltered{
                   of,
                   protocol::BookmarkAdded{partition, {(round + 1) * 1024, std::string(120, 'b')}}},
               BookmarkMarked{{of, partition}, {(round + 1) * 1024, {{0, 0, round * 4}}}}});
        write({IterationAltered{
                   of, protocol::ReaderCommitted{ClientId(job), partition,
                                                 IndexSet::Of(round * 1024, (round + 1) * 1024)}},
               IterationAltered{of, protocol::BookmarksRetired{partition, (round + 1) * 1024}}});
      }
    }
    if (absl::Status durable = (*journal)->WaitDurable(sequence); !durable.ok()) Fail(durable);
  }
  const std::vector<std::string> expected = EncodeState(state).value();
  const double begin = Now();
  auto journal = OpenSqliteJournal(folder);
  if (!journal.ok()) Fail(journal.status());
  const double opened = Now();
  CoreOptions options;
  options.now = [] { return absl::Now(); };
  options.random = [] { return uint64_t{1}; };
  options.job_tokens = [](uint64_t) { return TokensWith(DrawJobKey()); };
  options.port_refuses = [](const std::string&) { return false; };
  options.events = SilentEventLog();
  options.per_snapshot = {.records = std::numeric_limits<uint64_t>::max(),
                          .bytes = std::numeric_limits<uint64_t>::max()};
  auto core = Core::Open(std::move(options), *std::move(journal));
  if (!core.ok()) Fail(core.status());
  const double end = Now();
  std::printf(
      "recovery of %lld changes, %.0f MB, state %.1f MB: %.2f s (read %.2f, applied %.2f)\n",
      static_cast<long long>(changes), static_cast<double>(bytes) / 1e6,
      static_cast<double>(SnapshotBytes(expected)) / 1e6, end - begin, opened - begin,
      end - opened);
  core->reset();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  namespace bench = penstock::bench;
  CLI::App app("Measure the load that a dispatcher can bear.");
  app.require_subcommand(1);
  bench::Load load;
  auto* heartbeats =
      app.add_subcommand("heartbeats", "Send heartbeats as open arrivals in this process.");
  heartbeats->add_option("--workers", load.workers);
  heartbeats->add_option("--clients", load.clients);
  heartbeats->add_option("--rate", load.rate, "Heartbeats a second.");
  heartbeats->add_option("--seconds", load.seconds);
  std::vector<int> counts = {250, 500, 1000};
  double per_s = 1, seconds = 20;
  auto* streams = app.add_subcommand(
      "streams", "Measure gRPC streams to a dispatcher in a process of its own.");
  streams->add_option("--streams", counts, "Numbers of streams to measure, one after the other.")
      ->delimiter(',');
  streams->add_option("--per-s", per_s, "Heartbeats a second of each stream.");
  streams->add_option("--seconds", seconds);
  int64_t changes = 1'000'000;
  std::string folder = "/tmp/penstock_dispatcher_bench";
  auto* recovery = app.add_subcommand("recovery", "Recover from a journal without a snapshot.");
  recovery->add_option("--changes", changes);
  recovery->add_option("--work-dir", folder,
                       "Directory for the journal, which is removed afterwards.");
  auto* serve = app.add_subcommand("serve", "Run a dispatcher until killed.")->group("");
  CLI11_PARSE(app, argc, argv);
  if (serve->parsed()) return bench::Serve();
  if (heartbeats->parsed()) bench::InProcess(load).Run(load);
  if (streams->parsed()) {
    for (int count : counts) bench::RunStreams(count, per_s, seconds);
  }
  if (recovery->parsed()) bench::RunRecovery(changes, folder);
  return 0;
}
