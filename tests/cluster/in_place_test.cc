// SPDX-License-Identifier: Apache-2.0
// How many elements the worker copies to send them over shared memory: only the first few, for any
// number of trainers that take them more slowly than they are made. Counted, not timed: a trainer
// takes one when all windows are full.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/memory/copied.h"
#include "dataplane/transfer/filled.h"
#include "include/status_macros.h"
#include "penstock/expr.h"
#include "penstock/register.h"
#include "tests/cluster/consumers.h"
#include "tests/eventually.h"

namespace penstock {
namespace {

constexpr int64_t kRowBytes = 37'632;  // a picture of 112 x 112
// After this many, each link has slots for the elements on their way and those read ahead.
constexpr int64_t kFirst = 80;  // elements
constexpr int64_t kWindow = 4;

absl::Status MakeRow(CallContext& call) {
  ASSIGN_OR_RETURN(absl::Span<uint8_t> out, call.OutputAs<uint8_t>(0, {kRowBytes}));
  std::fill(out.begin(), out.end(), static_cast<uint8_t>(call.inputs()[0].scalar<int64_t>()));
  return absl::OkStatus();
}
// Returns the number of elements received by all trainers of this process.
int64_t CountReceived() {
  int64_t received = 0;
  for (size_t how = 0; how < transfer::kWaysFilled; ++how)
    received += transfer::FilledOfProcess(static_cast<transfer::Filled>(how));
  return received;
}
// Says how many of them were copied, and why.
std::string WhyCopied() {
  return absl::StrCat("no slot ", transfer::FilledOfProcess(transfer::Filled::kNoSlot),
                      ", made for another ",
                      transfer::FilledOfProcess(transfer::Filled::kForAnother), ", elsewhere ",
                      transfer::FilledOfProcess(transfer::Filled::kElsewhere));
}
void AwaitReceived(int64_t count) {
  EXPECT_TRUE(Eventually([&] { return CountReceived() >= count; }));
}
PENSTOCK_REGISTER_MAP("in_place.make_row", 1, Dense(kUInt8, {kRowBytes}), MakeRow);

// Elements of `rows` rows each.
Dataset Batches(int64_t elements, int64_t rows) {
  return Dataset::Range(elements * rows)
      .Map([](Expr x) { return Call("in_place.make_row", x); })
      .Batch(rows);
}

// The node between the batches and the trainers.
struct Last {
  const char* name;
  Dataset (*of)(int64_t elements, int64_t rows);
};
constexpr Last kNothing{"", Batches};
constexpr Last kPrefetch{"Prefetched", [](int64_t elements, int64_t rows) {
                           return Batches(elements, rows).Prefetch(2);
                         }};
constexpr Last kFilter{"Filtered", [](int64_t elements, int64_t rows) {
                         return Batches(elements, rows)
                             .Filter([](Expr x) { return Cast(x[0][0], kInt64) >= 0; })
                             .TakeWhile([](Expr x) { return Cast(x[0][0], kInt64) >= 0; });
                       }};
constexpr Last kConcatenate{"Concatenated", [](int64_t elements, int64_t rows) {
                              return Batches(elements / 2, rows)
                                  .Concatenate(Batches(elements - elements / 2, rows))
                                  .IgnoreErrors();
                            }};
constexpr Last kInterleave{"Interleaved", [](int64_t elements, int64_t rows) {
                             return Dataset::Range(2).Interleave(
                                 [=](Expr) { return Batches(elements / 2, rows); },
                                 {.cycle_length = 2, .block_length = 1});
                           }};
constexpr Last kSample{
    "Sampled", [](int64_t elements, int64_t rows) {
      return Dataset::SampleFromDatasets({Batches(elements, rows), Batches(elements, rows)});
    }};

struct Scene {
  int64_t rows;  // of an element
  int64_t trainers;
  bool coordinated;
  Last last = kNothing;
};
void PrintTo(const Scene& scene, std::ostream* out) {
  *out << scene.rows << " rows, " << scene.trainers << " trainers, " << scene.last.name;
}

class InPlace : public testing::TestWithParam<Scene> {};

// Returns the copied share of all bytes, counted once the links have their slots.
double ShareCopied(const Scene& scene) {
  const int64_t batches = kFirst + 240;
  // More than is read: at the end, when windows run empty, the trainer that has least gets a copy
  // at once.
  const int64_t all = batches + 2 * kWindow * scene.trainers;
  Cluster cluster(1);
  const int64_t before = CountReceived();
  const Dataset dataset = scene.last.of(all, scene.rows);
  std::vector<Iterator> trainers;
  for (int64_t i = 0; i < scene.trainers; ++i) {
    DistributeOptions options =
        scene.coordinated
            ? Consumer(cluster, i, scene.trainers, ShardingPolicy::kDynamic, "in_place")
            : cluster.Options(ShardingPolicy::kDynamic, "in_place");
    options.data_transfer_protocol = "shm";
    options.max_outstanding_requests = kWindow;
    trainers.push_back(IteratorOf(dataset.Distribute(options)));
  }
  // Each trainer holds its element until it takes the next. All take the first step in parallel:
  // rounds begin when all are there.
  std::vector<Element> elements(trainers.size());
  const auto step = [&](size_t i) {
    absl::StatusOr<std::optional<Element>> element = trainers[i].Next();
    if (!element.ok() || !element->has_value())
      FAIL() << "trainer " << i << " got none: " << element.status();
    elements[i] = **std::move(element);
  };
  std::vector<std::thread> first;
  for (size_t i = 0; i < trainers.size(); ++i) first.emplace_back(step, i);
  for (std::thread& thread : first) thread.join();
  // A window includes the element that its trainer holds.
  int64_t copied = 0;
  for (int64_t taken = scene.trainers; taken < batches; ++taken) {
    if (taken == kFirst) copied = BytesCopied();
    AwaitReceived(before + taken + (kWindow - 1) * scene.trainers);
    step(static_cast<size_t>(taken % scene.trainers));
  }
  return static_cast<double>(BytesCopied() - copied) /
         static_cast<double>((batches - kFirst) * scene.rows * kRowBytes);
}

TEST_P(InPlace, NextToNothingIsCopied) {
  const double share = ShareCopied(GetParam());
  std::printf("copied of all bytes: %.3f\n", share);
  EXPECT_LE(share, 0.02) << "copied in this process: " << WhyCopied();
}

// Elements of 1.1 and of 9.6 MB.
INSTANTIATE_TEST_SUITE_P(
    Trainers, InPlace,
    testing::Values(Scene{30, 1, false}, Scene{30, 1, false, kPrefetch}, Scene{30, 2, false},
                    Scene{30, 2, false, kPrefetch}, Scene{30, 4, false}, Scene{30, 2, true},
                    Scene{30, 4, true}, Scene{30, 4, true, kPrefetch}, Scene{256, 1, false},
                    Scene{256, 2, false, kPrefetch}, Scene{256, 4, false},
                    Scene{256, 4, true, kPrefetch}, Scene{30, 2, false, kFilter},
                    Scene{30, 2, true, kFilter}, Scene{30, 2, false, kConcatenate},
                    Scene{30, 2, true, kConcatenate}, Scene{30, 2, false, kInterleave},
                    Scene{30, 2, true, kInterleave}, Scene{30, 2, false, kSample}),
    [](const auto& its) {
      return absl::StrCat(its.param.rows, "Rows", its.param.trainers,
                          its.param.coordinated ? "Coordinated" : "", its.param.last.name);
    });

}  // namespace
}  // namespace penstock
