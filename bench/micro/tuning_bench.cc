// SPDX-License-Identifier: Apache-2.0
// The rate of kAutotune compared with fixed settings of the same dataset, in one process. All fixed
// pairs of (num_parallel_calls, Prefetch's buffer_size) and kAutotune alternate in windows of a few
// seconds. Then kAutotune runs again with half of the memory that it had claimed.
//
//   tuning_bench [seconds of a window = 1] [rounds = 5]
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/measure.h"
#include "bench/workload.h"
#include "bench/workloads/images.h"
#include "dataplane/dataset/engine/read_ahead.h"
#include "include/status_macros.h"
#include "penstock/dataset.h"
#include "penstock/register.h"

namespace penstock::bench {
namespace {

constexpr int64_t kBatch = 64;

// Waits a millisecond without using a core, like a call to a server.
absl::Status Answered(CallContext& call) {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSIGN_OR_RETURN(absl::Span<int64_t> out, call.OutputAs<int64_t>(0, {}));
  out[0] = call.inputs()[0].scalar<int64_t>();
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("bench.answered", 1, Scalar(kInt64), Answered);

struct Pipeline {
  std::string name;
  std::function<Dataset(int64_t calls)> make;  // without Prefetch
};

struct Setting {
  int64_t calls = kAutotune;
  int64_t prefetch = kAutotune;
  std::string text() const {
    return calls == kAutotune ? "kAutotune"
                              : absl::StrCat("calls ", calls, ", prefetch ", prefetch);
  }
};

// A running dataset, and its rate in each window.
struct Contender {
  Setting setting;
  Iterator iterator;
  std::vector<double> per_s;
};

// Waits until the read-ahead of the others has stopped.
void AwaitQuiet() {
  constexpr std::chrono::milliseconds kLook{50};
  for (double before = -1, now = CpuSeconds(::getpid()); now - before > 0.005;) {
    std::this_thread::sleep_for(kLook);
    before = std::exchange(now, CpuSeconds(::getpid()));
  }
}

// Returns batches a second. Batches that were ready before do not count.
double ReadFor(Iterator& iterator, double seconds) {
  AwaitQuiet();
  double batches = 0, from = 0;
  for (const double start = Now(); Now() < start + 1.25 * seconds;) {
    const absl::StatusOr<std::optional<Element>> next = iterator.Next();
    if (!next.ok() || !next->has_value()) {
      std::fprintf(stderr, "no element: %s\n", std::string(next.status().message()).c_str());
      std::exit(1);
    }
    if (from > 0) {
      ++batches;
    } else if (Now() > start + 0.25 * seconds) {
      from = Now();
    }
  }
  return batches / (Now() - from);
}

Contender Enter(const Pipeline& pipeline, Setting setting) {
  return {setting,
          *pipeline.make(setting.calls).Prefetch(setting.prefetch).MakeIterator({.seed = 17}),
          {}};
}

void Run(const Pipeline& pipeline, double seconds, int rounds) {
  std::vector<Contender> contenders;
  contenders.push_back(Enter(pipeline, {}));
  for (int64_t calls : {1, 2, 4, 16, 64})
    for (int64_t prefetch : {0, 2, 8}) contenders.push_back(Enter(pipeline, {calls, prefetch}));
  ReadFor(contenders.front().iterator, 4 * seconds);  // time for kAutotune to find its settings
  for (int round = 0; round < rounds; ++round)
    for (Contender& each : contenders) each.per_s.push_back(ReadFor(each.iterator, seconds));

  const auto median = [](const Contender& each) { return Median(each.per_s); };
  const double tuned = median(contenders.front());
  const auto best = std::max_element(contenders.begin() + 1, contenders.end(),
                                     [&](auto& a, auto& b) { return median(a) < median(b); });
  for (const Contender& each : contenders)
    std::printf("%-8s %-24s %8.2f batches/s\n", pipeline.name.c_str(), each.setting.text().c_str(),
                median(each));

  ReadAheadBudget& budget = ReadAheadBudget::OfProcess();
  const int64_t limit = budget.limit(), claimed = budget.claimed();
  budget.SetLimit(claimed / 2);
  ReadFor(contenders.front().iterator, seconds);
  std::vector<double> halved;
  std::vector<double> beside;
  for (int round = 0; round < rounds; ++round) {
    halved.push_back(ReadFor(contenders.front().iterator, seconds));
    beside.push_back(ReadFor(best->iterator, seconds));
  }
  std::printf("%-8s kAutotune is %.2f of the best (%s); with %.1f of %.1f MB claimed, %.2f\n",
              pipeline.name.c_str(), tuned / median(*best), best->setting.text().c_str(),
              static_cast<double>(budget.claimed()) / 1e6, static_cast<double>(claimed) / 1e6,
              Median(halved) / Median(beside));
  budget.SetLimit(limit);
}

int Main(double seconds, int rounds) {
  const std::string folder = absl::StrCat("/tmp/penstock-tuning-", ::getpid());
  std::filesystem::create_directory(folder);
  if (const absl::Status wrote = WriteImages(folder); !wrote.ok()) {
    std::fprintf(stderr, "%s\n", std::string(wrote.message()).c_str());
    return 1;
  }
  const Dataset files = Dataset::ListFiles(folder + "/*.jpg").Repeat().Enumerate();
  Run({"I1",
       [&](int64_t calls) {
         return files
             .Map(
                 [](const Expr& x) {
                   return DecodeJpeg("").RandomResizedCrop(224, 224).RandomFlip()(ReadFile(x[1]));
                 },
                 {.num_parallel_calls = calls})
             .Batch(kBatch);
       }},
      seconds, rounds);
  Run({"H1",
       [&](int64_t calls) {
         return files
             .Map(
                 [](const Expr& x) {
                   return Call("bench.uneven_image", Tuple({x[0], ReadFile(x[1])}));
                 },
                 {.num_parallel_calls = calls})
             .Batch(kBatch);
       }},
      seconds, rounds);
  Run({"waiting",
       [](int64_t calls) {
         return Dataset::Range(int64_t{1} << 40)
             .Map([](const Expr& x) { return Call("bench.answered", x); },
                  {.num_parallel_calls = calls})
             .Batch(kBatch);
       }},
      seconds, rounds);
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  penstock::bench::Workloads();  // registers the function of H1
  return penstock::bench::Main(argc > 1 ? std::atof(argv[1]) : 1,
                               argc > 2 ? std::atoi(argv[2]) : 5);
}
