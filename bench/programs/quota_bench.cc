// SPDX-License-Identifier: Apache-2.0
// The effect of a job's quota on its neighbour. Two jobs share one worker. Each element is held for
// a given time, with a permit. Measures the neighbour alone, next to a job without a quota, and
// next to a job under each of the two bounds. The neighbour's fair share is half of the rate that
// it has alone.
//
//   quota_bench --permits 2 --element-ms 2 --seconds 5
#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "bench/programs/held_elements.h"
#include "control/stub/dispatcher_stub.h"
#include "penstock/penstock.h"

namespace penstock::bench {
namespace {

constexpr int64_t kElementBytes = int64_t{1} << 16;
// A trainer slow enough that elements pile up to its quota.
constexpr double kSlowStep = 0.02;  // seconds

struct Options {
  int permits = 2;
  double element_ms = 2;
  double seconds = 5;
};

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "quota_bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

// A job and its trainer, which reads until this is destroyed.
class Job {
 public:
  Job(const Options& options, const std::string& service, const std::string& name, JobQuota quota,
      double step_s)
      : step_s_(step_s) {
    data_ = HeldElements(kElementBytes, options.element_ms / 1e3)
                .Distribute({.processing_mode = ShardingPolicy::kDynamic,
                             .service = service,
                             .job_name = name,
                             .quota = quota});
    trainer_ = std::thread([this] { Train(); });
  }
  ~Job() {
    stop_ = true;
    trainer_.join();
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int64_t elements() const { return elements_; }

 private:
  void Train() {
    absl::StatusOr<Iterator> it = data_->MakeIterator();
    if (!it.ok()) Fail(it.status());
    while (!stop_) {
      const absl::StatusOr<std::optional<Element>> element = it->Next();
      if (!element.ok()) Fail(element.status());
      ++elements_;
      if (step_s_ > 0) Sleep(step_s_);
    }
  }

  const double step_s_;
  std::optional<Dataset> data_;
  std::atomic<bool> stop_ = false;
  std::atomic<int64_t> elements_ = 0;
  std::thread trainer_;
};

struct Case {
  const char* name;
  bool beside = true;  // with another job
  JobQuota quota;      // of the other job
  double step_s = 0;   // of the other job's trainer
};

// Elements a second of both jobs, and why the other job is slow.
struct Rates {
  double neighbour = 0, other = 0;
  std::string slowed_by;
};

Rates Run(const Options& options, const Case& with) {
  absl::StatusOr<std::unique_ptr<DispatchServer>> dispatcher = DispatchServer::Start();
  if (!dispatcher.ok()) Fail(dispatcher.status());
  const std::string service = (*dispatcher)->target();
  absl::StatusOr<std::unique_ptr<WorkerServer>> worker =
      WorkerServer::Start({.dispatcher_address = service, .permits = options.permits});
  if (!worker.ok()) Fail(worker.status());
  Rates rates;
  {
    std::unique_ptr<Job> other;
    if (with.beside) {
      other = std::make_unique<Job>(options, service, "bounded", with.quota, with.step_s);
    }
    Job neighbour(options, service, "neighbour", {}, 0);
    Sleep(2);
    const int64_t before = neighbour.elements();
    const int64_t other_before = other ? other->elements() : 0;
    Sleep(options.seconds);
    rates.neighbour = static_cast<double>(neighbour.elements() - before) / options.seconds;
    if (other) {
      rates.other = static_cast<double>(other->elements() - other_before) / options.seconds;
    }
    auto stub = control::DispatcherStub::Make(service);
    if (!stub.ok()) Fail(stub.status());
    const auto status = (*stub)->GetStatus({.timeout = absl::Minutes(1), .stop = {}});
    if (!status.ok()) Fail(status.status());
    for (const control::JobStatus& job : status->jobs) {
      if (job.name == "bounded") rates.slowed_by = job.slowed_by;
    }
  }
  (*worker)->Stop();
  (*dispatcher)->Stop();
  return rates;
}

void RunAll(const Options& options) {
  const Case cases[] = {{.name = "alone", .beside = false, .quota = {}},
                        {.name = "beside one without a quota", .quota = {}},
                        {.name = "beside one of 1 permit", .quota = {.max_permits = 1}},
                        {.name = "beside one of 4 elements' bytes",
                         .quota = {.max_bytes_in_flight = 4 * kElementBytes},
                         .step_s = kSlowStep}};
  double alone = 0;
  for (const Case& with : cases) {
    const Rates rates = Run(options, with);
    if (!with.beside) alone = rates.neighbour;
    std::printf("%-32s %7.0f elements/s, %.2f of its share; the other %7.0f  %s\n", with.name,
                rates.neighbour, rates.neighbour / (alone / 2), rates.other,
                rates.slowed_by.c_str());
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  penstock::bench::Options options;
  CLI::App app("Measure what a job with a quota leaves to another job.");
  app.add_option("--permits", options.permits, "Permits of the worker.");
  app.add_option("--element-ms", options.element_ms,
                 "Milliseconds for which an element is held, with its permit.");
  app.add_option("--seconds", options.seconds, "Seconds of each case.");
  CLI11_PARSE(app, argc, argv);
  penstock::bench::RunAll(options);
  return 0;
}
