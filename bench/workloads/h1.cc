// SPDX-License-Identifier: Apache-2.0
// H1: I1 in batches of 64, where one image in a hundred takes 50 times as long. The limit is the
// bound given by the mean cost: one thread for each core takes the next image as soon as it has
// finished one, so that no thread waits.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "bench/interrupt.h"
#include "bench/jpeg.h"
#include "bench/measure.h"
#include "bench/workload.h"
#include "bench/workloads/images.h"
#include "include/status_macros.h"
#include "penstock/register.h"

namespace penstock::bench {
namespace {

constexpr int64_t kUnevenBatch = 64;
constexpr int64_t kUnevenBatchBytes = kUnevenBatch * kImageBytes;

// Returns 50 for one number in a hundred, scattered; else 1.
int RepetitionsOf(uint64_t number) {
  const uint64_t mixed = (number + 1) * 0x9e3779b97f4a7c15u;
  return (mixed >> 32) % 100 == 0 ? 50 : 1;
}

void MakeUneven(const std::string& jpeg, uint64_t number, uint8_t* out) {
  thread_local BareLoop loop;
  for (int i = 0; i < RepetitionsOf(number); ++i) {
    loop.Run(jpeg, {.seed = 17, .element = number}, out);
  }
}

// Maps (number, JPEG) to the image.
absl::Status UnevenImage(CallContext& call) {
  ASSIGN_OR_RETURN(absl::Span<std::byte> slot, call.Output(0, {kSide, kSide, 3}));
  const std::string jpeg(call.inputs()[1].string(0));
  MakeUneven(jpeg, static_cast<uint64_t>(call.inputs()[0].scalar<int64_t>()),
             reinterpret_cast<uint8_t*>(slot.data()));
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("bench.uneven_image", 1, Dense(kUInt8, {kSide, kSide, 3}), UnevenImage);

class MeanCost final : public Side {
 public:
  explicit MeanCost(std::vector<std::string> jpegs)
      : jpegs_(std::move(jpegs)), roles_{{"limit", {::getpid()}}} {}

  std::string name() const override { return "mean cost"; }
  const Roles& roles() const override { return roles_; }

  absl::StatusOr<Done> Read(double seconds) override {
    const double start = Now();
    std::vector<std::thread> threads;
    std::atomic<double> images_per_s{0};  // sum of the threads' rates, since threads end separately
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
      threads.emplace_back([&] {
        std::vector<uint8_t> image(kImageBytes);
        double images = 0, now = start;
        for (; !Interrupted() && now < start + seconds; now = Now(), ++images) {
          const uint64_t number = next_++;
          MakeUneven(jpegs_[number % jpegs_.size()], number, image.data());
        }
        images_per_s.fetch_add(images / (now - start));
      });
    }
    for (std::thread& thread : threads) thread.join();
    const double images = images_per_s * seconds;
    return Done{.seconds = seconds,
                .elements = images / kUnevenBatch,
                .bytes = std::llround(images) * kImageBytes};
  }

 private:
  const std::vector<std::string> jpegs_;
  Roles roles_;
  std::atomic<uint64_t> next_{0};
};

class Uneven final : public Workload {
 public:
  std::string_view name() const override { return "H1"; }
  std::string_view question() const override {
    return "batches of 64 images of which one in a hundred is 50 times as slow";
  }
  std::vector<int64_t> sizes() const override { return {kUnevenBatchBytes}; }
  bool sized() const override { return false; }

  bool has_files() const override { return true; }
  absl::Status Prepare(const Setup& setup) const override { return WriteImages(setup.scratch); }
  Dataset MakeDataset(const Setup& setup) const override {
    return ImageBatches(setup.scratch, kUnevenBatch, [](const Expr& x) {
      return Call("bench.uneven_image", Tuple({x[0], ReadFile(x[1])}));
    });
  }
  std::unique_ptr<Reader> MakeReader(const Setup& /*setup*/) const override {
    return MakeBatchReader(kUnevenBatch);
  }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    ASSIGN_OR_RETURN(std::vector<std::string> jpegs, ReadImages(setup.scratch));
    return std::make_unique<MeanCost>(std::move(jpegs));
  }
};

}  // namespace

const Workload& H1() {
  static const Uneven& h1 = *new Uneven;
  return h1;
}

}  // namespace penstock::bench
