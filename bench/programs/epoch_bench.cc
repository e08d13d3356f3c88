// SPDX-License-Identifier: Apache-2.0
// The costs of an epoch besides its elements: the time from Distribute to the first element and
// from the last element to the end, the rate at which numbers are dealt in mode DYNAMIC, the cost
// of a slow worker, and how long a trainer waits while a worker joins. Dispatcher and workers are
// separate processes.
//
//   epoch_bench starts                   # both times, over 50 short epochs
//   epoch_bench deals --workers 2        # Range(1e6).Batch(1000)
//   epoch_bench uneven --pauses 2000,4000
//   epoch_bench joins --step-ms 50
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/measure.h"
#include "bench/process.h"
#include "include/status_macros.h"
#include "penstock/penstock.h"

namespace penstock::bench {
namespace {

constexpr absl::Duration kBound = absl::Minutes(1);
constexpr const char* kLog = "/tmp/epoch_bench.log";

int64_t pause_us = 0;  // this worker's pause for each element

absl::Status Pause(CallContext& call) {
  ASSIGN_OR_RETURN(absl::Span<int64_t> out, call.OutputAs<int64_t>(0, {}));
  absl::SleepFor(absl::Microseconds(pause_us));
  out[0] = call.inputs()[0].scalar<int64_t>();
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("bench.pause", 1, Scalar(kInt64), Pause);

template <class Value>
Value OrExit(absl::StatusOr<Value> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "epoch_bench: %s\n", value.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(value);
}

// --- Servers, until their input ends -----------------------------------------------

void ServeUntilStopped(const std::string& say) {
  std::printf("%s\n", say.c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
}
int ServeDispatcher() {
  auto dispatcher = OrExit(DispatchServer::Start());
  ServeUntilStopped(dispatcher->target());
  return 0;
}
int ServeWorker(const std::string& target) {
  auto worker = OrExit(WorkerServer::Start({.dispatcher_address = target}));
  ServeUntilStopped("ready");
  worker->Stop();
  return 0;
}

class Servers {
 public:
  Servers() { target_ = Start({"", "serve"}); }
  ~Servers() {
    while (processes_.size() > 1) processes_.pop_back();
  }
  void AddWorker(int64_t pause = 0) {
    Start({"", "serve", "--dispatcher", target_, "--pause-us", absl::StrCat(pause)});
  }
  const std::string& target() const { return target_; }

 private:
  std::string Start(std::vector<std::string> words) {
    processes_.push_back(OrExit(Process::Start(std::move(words), Process::Ends::kWithInput, kLog)));
    return OrExit(processes_.back()->ReadLine(kBound));
  }

  std::vector<std::unique_ptr<Process>> processes_;
  std::string target_;
};

// --- Reading -----------------------------------------------------------------------

std::optional<Element> Next(Iterator& it) {
  return OrExit(it.Next());
}

struct Times {
  double first_ms;  // from Distribute to the first element
  double end_ms;    // from the last one to the end
  double all_s;
  int64_t elements;
};

Times ReadEpoch(const Dataset& before, const DistributeOptions& options) {
  Times times{};
  const double start = Now();
  Iterator it = OrExit(before.Distribute(options).MakeIterator());
  double last = start;
  while (std::optional<Element> element = Next(it)) {
    last = Now();
    if (times.elements++ == 0) times.first_ms = (last - start) * 1e3;
  }
  times.end_ms = (Now() - last) * 1e3;
  times.all_s = last - start;
  return times;
}

double Of(std::vector<Times> all, double Times::*what, double quantile) {
  std::vector<float> values;
  for (const Times& times : all) values.push_back(static_cast<float>(times.*what));
  return quantile == 1 ? *std::max_element(values.begin(), values.end())
                       : Quantile(values, quantile);
}

struct Options {
  int workers = 1;
  int epochs = 50;
  int step_ms = 50;
  std::vector<int64_t> pauses = {2000, 4000};  // of each worker, in µs
  std::string protocol = "auto";
};

void Starts(const Options& options) {
  Servers servers;
  for (int i = 0; i < options.workers; ++i) servers.AddWorker();
  const Dataset data = Dataset::Range(1000).Batch(10);
  const DistributeOptions read{.processing_mode = ShardingPolicy::kDynamic,
                               .service = servers.target(),
                               .data_transfer_protocol = options.protocol};
  const Times cold = ReadEpoch(data, read);
  std::vector<Times> warm;
  for (int i = 0; i < options.epochs; ++i) warm.push_back(ReadEpoch(data, read));
  std::printf(
      "%d workers  first element: cold %.1f ms  warm p50 %.2f p99 %.2f max %.2f ms   "
      "end: p50 %.2f p99 %.2f max %.2f ms\n",
      options.workers, cold.first_ms, Of(warm, &Times::first_ms, 0.5),
      Of(warm, &Times::first_ms, 0.99), Of(warm, &Times::first_ms, 1),
      Of(warm, &Times::end_ms, 0.5), Of(warm, &Times::end_ms, 0.99), Of(warm, &Times::end_ms, 1));
}

void Deals(const Options& options) {
  constexpr int64_t kNumbers = 1'000'000;
  Servers servers;
  for (int i = 0; i < options.workers; ++i) servers.AddWorker();
  const Dataset data = Dataset::Range(kNumbers).Batch(1000);
  std::vector<Times> epochs;
  for (int i = 0; i < options.epochs; ++i) {
    epochs.push_back(ReadEpoch(data, {.processing_mode = ShardingPolicy::kDynamic,
                                      .service = servers.target(),
                                      .data_transfer_protocol = options.protocol}));
  }
  std::printf("%d workers  %.2f million numbers/s, the slowest epoch %.2f\n", options.workers,
              1 / Of(epochs, &Times::all_s, 0.5), 1 / Of(epochs, &Times::all_s, 1));
}

void Uneven(const Options& options) {
  Servers servers;
  double speed = 0;
  for (int64_t pause : options.pauses) {
    servers.AddWorker(pause);
    speed += 1e6 / static_cast<double>(pause);
  }
  constexpr int64_t kNumbers = 4000;
  const Dataset data = Dataset::Range(kNumbers).Map([](auto n) { return Call("bench.pause", n); },
                                                    {.num_parallel_calls = 1});
  const Times times = ReadEpoch(data, {.processing_mode = ShardingPolicy::kDynamic,
                                       .service = servers.target(),
                                       .data_transfer_protocol = options.protocol});
  std::printf("%.2f s, %.0f elements/s; the workers' pauses alone allow %.0f\n", times.all_s,
              static_cast<double>(kNumbers) / times.all_s, speed);
}

// A trainer's steps with one worker that makes half of the needed elements; a second one joins.
void Joins(const Options& options) {
  Servers servers;
  servers.AddWorker(options.step_ms * 500);
  const Dataset data = Dataset::Range(1'000'000).Map([](auto n) { return Call("bench.pause", n); },
                                                     {.num_parallel_calls = 1});
  Iterator it = OrExit(data.Distribute({.processing_mode = ShardingPolicy::kDynamic,
                                        .service = servers.target(),
                                        .data_transfer_protocol = options.protocol})
                           .MakeIterator());
  std::vector<double> waits;
  std::thread joins;
  for (int step = 0; step < 120; ++step) {
    if (step == 40) joins = std::thread([&] { servers.AddWorker(options.step_ms * 500); });
    const double before = Now();
    if (!Next(it)) break;
    waits.push_back((Now() - before) * 1e3);
    absl::SleepFor(absl::Milliseconds(options.step_ms));
  }
  joins.join();
  std::printf("steps of %d ms: longest wait before the join %.2f ms, from the join on %.2f ms\n",
              options.step_ms, *std::max_element(waits.begin() + 2, waits.begin() + 40),
              *std::max_element(waits.begin() + 40, waits.end()));
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  namespace b = penstock::bench;
  b::Options options;
  CLI::App app("Measure what an epoch costs besides its elements.");
  app.require_subcommand(1);
  std::string dispatcher;
  auto* serve = app.add_subcommand("serve")->group("");
  serve->add_option("--dispatcher", dispatcher,
                    "Dispatcher of this worker; without it a dispatcher runs.");
  serve->add_option("--pause-us", b::pause_us);
  auto* starts =
      app.add_subcommand("starts", "Measure the first element and the end of short epochs.");
  auto* deals = app.add_subcommand("deals", "Read Range(1e6).Batch(1000) in mode DYNAMIC.");
  auto* uneven = app.add_subcommand("uneven", "Read from workers of different speeds.");
  auto* joins = app.add_subcommand("joins", "Let a worker join during a run.");
  for (auto* command : {starts, deals, uneven, joins}) {
    command->add_option("--protocol", options.protocol,
                        "Protocol of the transfer: auto, shm, tcp, …");
  }
  for (auto* command : {starts, deals}) {
    command->add_option("--workers", options.workers)->check(CLI::Range(1, 64));
    command->add_option("--epochs", options.epochs)->check(CLI::Range(1, 100'000));
  }
  uneven->add_option("--pauses", options.pauses, "Microseconds for each element, by worker.")
      ->delimiter(',');
  joins->add_option("--step-ms", options.step_ms, "Milliseconds of the trainer's step.")
      ->check(CLI::Range(1, 10'000));
  CLI11_PARSE(app, argc, argv);
  if (serve->parsed())
    return dispatcher.empty() ? b::ServeDispatcher() : b::ServeWorker(dispatcher);
  if (starts->parsed()) b::Starts(options);
  if (deals->parsed()) b::Deals(options);
  if (uneven->parsed()) b::Uneven(options);
  if (joins->parsed()) b::Joins(options);
  return 0;
}
