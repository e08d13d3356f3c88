// SPDX-License-Identifier: Apache-2.0
// Measures the time that an element is on its way, from the end of the worker's last function,
// which stamps it, to the return of Next() in another process, and the trainer's CPU time for an
// element. Nothing reads the element's contents.
//
//   handover_bench --protocol shm --bytes 100000 --pause-us 10    # worker and trainer awake
//   handover_bench --protocol shm --pause-us 2000 --sleep         # worker and trainer asleep
//   handover_bench --protocol shm --bytes 9633792 --fill          # CPU time of a large element
#include <sys/resource.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/serving_self.h"
#include "include/status_macros.h"
#include "penstock/penstock.h"

namespace penstock::bench {
namespace {

int64_t Now() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// User and system CPU of this process, in µs.
double CpuMicroseconds() {
  rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

// Makes x[0] bytes after a pause of x[1] µs. Sleeps in the pause if x[2] is 1, and fills the bytes
// if x[3] is 1. The first eight bytes are the time at the end.
absl::Status Stamp(CallContext& call) {
  const int64_t bytes = call.inputs()[0].scalar<int64_t>();
  const int64_t pause = call.inputs()[1].scalar<int64_t>() * 1000;
  ASSIGN_OR_RETURN(absl::Span<std::byte> slot, call.Output(0, {bytes}));
  if (call.inputs()[2].scalar<int64_t>() == 1) {
    const timespec left{pause / 1'000'000'000, pause % 1'000'000'000};
    ::nanosleep(&left, nullptr);
  } else {
    for (const int64_t until = Now() + pause; Now() < until;) {
    }
  }
  if (call.inputs()[3].scalar<int64_t>() == 1) std::memset(slot.data(), 1, slot.size());
  const int64_t now = Now();
  std::memcpy(slot.data(), &now, sizeof now);
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("bench.stamp", 1, Dense(kUInt8, {kUnknownDim}), Stamp);

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "handover_bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

// Runs dispatcher and worker until killed.
int Serve() {
  auto dispatcher = DispatchServer::Start();
  if (!dispatcher.ok()) Fail(dispatcher.status());
  auto worker = WorkerServer::Start({.dispatcher_address = (*dispatcher)->target()});
  if (!worker.ok()) Fail(worker.status());
  std::printf("%s\n", (*dispatcher)->target().c_str());
  std::fflush(stdout);
  (*dispatcher)->Join();
  return 0;
}

struct Options {
  std::string protocol = "shm";
  int64_t bytes = 100'000;
  int64_t pause_us = 10;
  bool sleep = false;
  bool fill = false;
  int count = 20'000;
  int64_t window = 8;
};

void Run(const Options& options) {
  const auto servers = ServingSelf::Start();
  if (!servers.ok()) Fail(servers.status());
  const int64_t bytes = options.bytes, pause = options.pause_us;
  const int64_t sleep = options.sleep ? 1 : 0, fill = options.fill ? 1 : 0;
  const Dataset data =
      Dataset::Range(int64_t{1} << 40)
          .Map(
              [=](auto) {
                return Call("bench.stamp",
                            Tuple({Expr(bytes), Expr(pause), Expr(sleep), Expr(fill)}));
              },
              {.num_parallel_calls = 1})
          .Distribute({.service = (*servers)->target(),
                       .max_outstanding_requests = options.window,
                       .data_transfer_protocol = options.protocol});
  auto it = data.MakeIterator();
  if (!it.ok()) Fail(it.status());
  std::vector<double> us;  // latencies
  us.reserve(static_cast<size_t>(options.count));
  double cpu = 0;
  const int warm = options.count / 10;
  for (int i = 0; i < warm + options.count; ++i) {
    if (i == warm) cpu = CpuMicroseconds();
    absl::StatusOr<std::optional<Element>> element = it->Next();
    const int64_t now = Now();
    if (!element.ok()) Fail(element.status());
    int64_t stamp;
    std::memcpy(&stamp, (*element)->tensor(0).data<uint8_t>().data(), sizeof stamp);
    if (i >= warm) us.push_back(static_cast<double>(now - stamp) / 1e3);
  }
  cpu = (CpuMicroseconds() - cpu) / options.count;
  std::sort(us.begin(), us.end());
  const auto quantile = [&](double q) {
    return us[static_cast<size_t>(q * static_cast<double>(us.size() - 1))];
  };
  std::printf(
      "%s %lld bytes, every %lld us%s  p10 %.2f us  p50 %.2f us  p90 %.2f us  p99 %.2f us"
      "  trainer CPU %.2f us/element\n",
      options.protocol.c_str(), static_cast<long long>(bytes), static_cast<long long>(pause),
      options.sleep ? " (asleep)" : "", quantile(0.1), quantile(0.5), quantile(0.9), quantile(0.99),
      cpu);
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  penstock::bench::Options options;
  CLI::App app("Measure how long an element is on its way from worker to trainer.");
  app.add_option("--protocol", options.protocol, "Protocol of the transfer: shm, tcp, grpc, …");
  app.add_option("--bytes", options.bytes, "Bytes of an element; small elements wait in frames.");
  app.add_option("--pause-us", options.pause_us, "Microseconds between two elements.");
  app.add_flag("--sleep", options.sleep, "Sleep in the pause.");
  app.add_flag("--fill", options.fill, "Write the whole element.");
  app.add_option("--count", options.count, "Number of elements.")
      ->check(CLI::Range(10, 10'000'000));
  app.add_option("--window", options.window, "Number of elements that are requested or held.");
  auto* serve =
      app.add_subcommand("serve", "Run a dispatcher and a worker until killed.")->group("");
  CLI11_PARSE(app, argc, argv);
  if (serve->parsed()) return penstock::bench::Serve();
  penstock::bench::Run(options);
  return 0;
}
