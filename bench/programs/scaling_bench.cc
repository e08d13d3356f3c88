// SPDX-License-Identifier: Apache-2.0
// Measures how many workers keep trainers fed, compared with the dispatcher's estimate. Reads
// elements like I2's (25 images, 3.8 MB) from sources of a known rate, for trainers that compute
// 0.224 s on each. Prints the trainers' AU and the dispatcher's estimate after 30 s for 1, 2, …
// workers, each with a new job. The smallest number with AU ≥ 0.9 is correct.
//
//   scaling_bench --trainers 2 --rate 3 --workers 1,2,3,4
//   scaling_bench --trainers 2 --rate 3 --workers 2 --seconds 330   # is the estimate steady?
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/programs/held_elements.h"
#include "control/stub/dispatcher_stub.h"
#include "penstock/penstock.h"

namespace penstock::bench {
namespace {

constexpr int64_t kElementBytes = int64_t{25} * 224 * 224 * 3;
constexpr absl::Duration kBound = absl::Seconds(30);  // of the estimate

struct Options {
  int trainers = 2;
  double step_s = 0.224;
  double rate = 3;  // elements a second from a partition
  std::vector<int> workers = {1, 2, 3, 4, 5};
  int permits = 1;
  std::string mode = "off";
  std::string protocol = "shm";
  double seconds = 36;  // for each number of workers
  bool ahead = false;
};

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "scaling_bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

// Trains until `stop`. Returns the share of its time in steps after `count` is set.
double Train(const Dataset& data, double step_s, const std::atomic<bool>& count,
             const std::atomic<bool>& stop) {
  absl::StatusOr<Iterator> it = data.MakeIterator();
  if (!it.ok()) Fail(it.status());
  double computed = 0;
  absl::Time begin = absl::InfiniteFuture();
  while (!stop) {
    const absl::StatusOr<std::optional<Element>> element = it->Next();
    if (!element.ok()) Fail(element.status());
    if (count && begin == absl::InfiniteFuture()) {
      begin = absl::Now();
      computed = 0;
    }
    const absl::Time step = absl::Now();
    Sleep(step_s);
    computed += absl::ToDoubleSeconds(absl::Now() - step);
  }
  return computed / absl::ToDoubleSeconds(absl::Now() - begin);
}

struct Found {
  double utilization = 0;
  int64_t at_bound = 0, least = 0, most = 0;  // estimates: after 30 s, and extremes from then on
  control::JobFeed feed;
};

Found RunWith(const Options& options, int workers) {
  absl::StatusOr<std::unique_ptr<DispatchServer>> dispatcher = DispatchServer::Start();
  if (!dispatcher.ok()) Fail(dispatcher.status());
  std::vector<std::unique_ptr<WorkerServer>> servers;
  for (int i = 0; i < workers; ++i) {
    absl::StatusOr<std::unique_ptr<WorkerServer>> worker = WorkerServer::Start(
        {.dispatcher_address = (*dispatcher)->target(), .permits = options.permits});
    if (!worker.ok()) Fail(worker.status());
    servers.push_back(*std::move(worker));
  }
  Dataset data = HeldElements(kElementBytes, 1 / options.rate);
  if (options.ahead) data = data.Prefetch(4);
  data = data.Distribute(
      {.processing_mode = options.mode == "off" ? ShardingPolicy::kOff : ShardingPolicy::kDynamic,
       .service = (*dispatcher)->target(),
       .job_name = "train",
       .max_outstanding_requests = 8,
       .data_transfer_protocol = options.protocol});
  std::atomic<bool> count = false, stop = false;
  std::vector<std::thread> trainers;
  std::vector<double> shares(static_cast<size_t>(options.trainers));
  for (double& share : shares) {
    trainers.emplace_back([&] { share = Train(data, options.step_s, count, stop); });
  }
  Found found;
  auto stub = control::DispatcherStub::Make((*dispatcher)->target());
  if (!stub.ok()) Fail(stub.status());
  const absl::Time begin = absl::Now();
  while (absl::Now() < begin + absl::Seconds(options.seconds)) {
    Sleep(0.5);
    const absl::Duration since = absl::Now() - begin;
    count = since > absl::Seconds(10);
    const auto status = (*stub)->GetStatus({.timeout = absl::Minutes(1), .stop = {}});
    if (!status.ok()) Fail(status.status());
    if (since < kBound) continue;
    const int64_t wanted = status->wanted_workers;
    if (found.at_bound == 0) found.at_bound = found.least = found.most = wanted;
    found.least = std::min(found.least, wanted);
    found.most = std::max(found.most, wanted);
    if (!status->jobs.empty()) found.feed = status->jobs[0].feed;
  }
  stop = true;
  for (std::thread& trainer : trainers) trainer.join();
  for (double share : shares) found.utilization += share / static_cast<double>(options.trainers);
  return found;
}

void Run(const Options& options) {
  std::printf("%d trainers of %.3f s, %.3g elements/s a partition, %d permits, mode %s%s\n",
              options.trainers, options.step_s, options.rate, options.permits, options.mode.c_str(),
              options.ahead ? ", read ahead" : "");
  int64_t truth = 0;
  for (int workers : options.workers) {
    const Found found = RunWith(options, workers);
    if (truth == 0 && found.utilization >= 0.9) truth = workers;
    std::printf(
        "%3d workers  AU %.3f  wanted %lld after 30 s, then %lld to %lld  (%.3g/s wanted, %.3g/s a "
        "worker, %.2f)\n",
        workers, found.utilization, static_cast<long long>(found.at_bound),
        static_cast<long long>(found.least), static_cast<long long>(found.most),
        found.feed.wanted_per_s, found.feed.worker_per_s, found.feed.workers);
    std::fflush(stdout);
  }
  std::printf("smallest number with AU >= 0.9 of these: %lld\n", static_cast<long long>(truth));
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  penstock::bench::Options options;
  CLI::App app("Measure how many workers keep trainers fed, and how many the dispatcher wants.");
  app.add_option("--trainers", options.trainers, "Number of trainers of one job.");
  app.add_option("--step-s", options.step_s, "Seconds that a trainer computes on an element.");
  app.add_option("--rate", options.rate, "Elements a second that a partition makes.");
  app.add_option("--workers", options.workers,
                 "Numbers of workers to measure, one after the other.")
      ->delimiter(',');
  app.add_option("--permits", options.permits, "Permits of each worker.");
  app.add_option("--mode", options.mode, "Mode of the job: off or dynamic.")
      ->check(CLI::IsMember({"off", "dynamic"}));
  app.add_option("--protocol", options.protocol, "Protocol of the transfer.");
  app.add_option("--seconds", options.seconds,
                 "Seconds with each number of workers; must exceed 30.");
  app.add_flag("--ahead", options.ahead, "Let workers read 4 elements ahead.");
  CLI11_PARSE(app, argc, argv);
  penstock::bench::Run(options);
  return 0;
}
