// SPDX-License-Identifier: Apache-2.0
// How many elements the worker copies on their way over shared memory: none but the first few, for
// any number of trainers that each take some time for a step. Counted, not timed.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "dataplane/memory/copied.h"
#include "penstock/expr.h"
#include "penstock/register.h"
#include "tests/cluster/consumers.h"

namespace penstock {
namespace {

constexpr int64_t kRowBytes = 37'632;  // a picture of 112 x 112
// Until each link has slots for what is on its way and what is read ahead.
constexpr int64_t kFirst = 80;  // elements

absl::Status MakeRow(CallContext& call) {
  PENSTOCK_ASSIGN_OR_RETURN(absl::Span<uint8_t> out, call.OutputAs<uint8_t>(0, {kRowBytes}));
  std::fill(out.begin(), out.end(), static_cast<uint8_t>(call.inputs()[0].scalar<int64_t>()));
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("in_place.make_row", 1, Dense(kUInt8, {kRowBytes}), MakeRow);

struct Scene {
  int64_t rows;  // of an element
  int64_t trainers;
  bool coordinated;
  bool prefetch;
};

class InPlace : public testing::TestWithParam<Scene> {};

TEST_P(InPlace, NextToNothingIsCopied) {
  const Scene& scene = GetParam();
  const bool large = scene.rows > 100;
  const int64_t batches = kFirst + (large ? 60 : 240);
  Cluster cluster(1);
  Dataset dataset = Dataset::Range(batches * scene.rows)
                        .Map([](Expr x) { return Call("in_place.make_row", x); })
                        .Batch(scene.rows);
  if (scene.prefetch) dataset = dataset.Prefetch(2);
  std::vector<Iterator> trainers;
  for (int64_t i = 0; i < scene.trainers; ++i) {
    DistributeOptions options =
        scene.coordinated
            ? Consumer(cluster, i, scene.trainers, ShardingPolicy::kDynamic, "in_place")
            : cluster.Options(ShardingPolicy::kDynamic, "in_place");
    options.data_transfer_protocol = "shm";
    trainers.push_back(IteratorOf(dataset.Distribute(options)));
  }
  std::atomic<int64_t> read{0}, copied_first{-1};
  std::vector<std::thread> reading;
  for (Iterator& it : trainers) {
    reading.emplace_back([&] {
      while (true) {
        absl::StatusOr<std::optional<Element>> element = it.Next();
        ASSERT_TRUE(element.ok()) << element.status();
        if (!element->has_value()) return;
        if (++read == kFirst) copied_first = BytesCopied();
        absl::SleepFor(absl::Milliseconds((large ? 20 : 4) * scene.trainers));
      }
    });
  }
  for (std::thread& thread : reading) thread.join();
  ASSERT_EQ(read, batches);
  const double share = static_cast<double>(BytesCopied() - copied_first) /
                       static_cast<double>((batches - kFirst) * scene.rows * kRowBytes);
  std::printf("copied of all bytes: %.3f\n", share);
  EXPECT_LE(share,
            0.1);  // 0.02 on an idle machine; on a busy one slots come back late, now and then
}

// Elements of 1.1 and of 9.6 MB.
INSTANTIATE_TEST_SUITE_P(Trainers, InPlace,
                         testing::Values(Scene{30, 1, false, false}, Scene{30, 1, false, true},
                                         Scene{30, 2, false, false}, Scene{30, 2, false, true},
                                         Scene{30, 4, false, false}, Scene{30, 2, true, false},
                                         Scene{30, 4, true, false}, Scene{30, 4, true, true},
                                         Scene{256, 1, false, false}, Scene{256, 2, false, true},
                                         Scene{256, 4, false, false}, Scene{256, 4, true, true}),
                         [](const auto& its) {
                           return absl::StrCat(its.param.rows, "Rows", its.param.trainers,
                                               its.param.coordinated ? "Coordinated" : "",
                                               its.param.prefetch ? "Prefetched" : "");
                         });

}  // namespace
}  // namespace penstock
