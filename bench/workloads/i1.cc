// SPDX-License-Identifier: Apache-2.0
// I1: JPEG files of 500 × 375, a random region of each as 224 × 224 and
// mirrored half of the time, in batches of 256; beside one core that does it by
// hand. What counts are images for each CPU-second of the workers. I2: the same
// in batches of 400 for a trainer that takes 0.224 s for each, as ResNet-50 on an
// H100 does in MLPerf Storage; what counts is the share of time it computes.
#include <unistd.h>

#include "bench/interrupt.h"
#include "bench/jpeg.h"
#include "bench/limits.h"
#include "bench/measure.h"
#include "bench/workload.h"
#include "bench/workloads/images.h"
#include "penstock/status.h"

namespace penstock::bench {
namespace {

constexpr int64_t kBatch = 256;
constexpr int64_t kBatchBytes = kBatch * kImageBytes;

constexpr int64_t kFedBatch = 400;
constexpr double kStep = 0.224;  // seconds

Dataset Prepared(const Setup& setup, int64_t batch) {
  return ImageBatches(setup.scratch, batch, [](const Expr& x) {
    return DecodeJpeg("").RandomResizedCrop(kSide, kSide).RandomFlip()(ReadFile(x[1]));
  });
}

class BareLoopLimit final : public Side {
 public:
  explicit BareLoopLimit(std::vector<std::string> jpegs)
      : jpegs_(std::move(jpegs)), batch_(kBatchBytes), roles_{{"limit", {::getpid()}}} {}

  std::string name() const override { return "libjpeg loop"; }
  const Roles& roles() const override { return roles_; }

  absl::StatusOr<Done> Read(double seconds) override {
    const double start = Now();
    double now = start;
    int64_t images = 0;
    for (; !Interrupted() && now < start + seconds; now = Now(), ++images, ++number_) {
      loop_.Run(jpegs_[number_ % jpegs_.size()], {.seed = 17, .element = number_},
                batch_.data() + static_cast<int64_t>(number_ % kBatch) * kImageBytes);
    }
    return Done{.seconds = now - start,
                .elements = static_cast<double>(images) / kBatch,
                .bytes = images * kImageBytes};
  }

 private:
  const std::vector<std::string> jpegs_;
  std::vector<uint8_t> batch_;
  BareLoop loop_;
  Roles roles_;
  uint64_t number_ = 0;
};

class Images final : public Workload {
 public:
  std::string_view name() const override { return "I1"; }
  std::string_view question() const override {
    return "JPEG files to batches of 256 images of 224 x 224, by CPU-second of the workers";
  }
  std::vector<int64_t> sizes() const override { return {kBatchBytes}; }
  bool sized() const override { return false; }
  Basis basis() const override { return Basis::kElementsPerWorkerCpuSecond; }
  int64_t max_outstanding_requests() const override { return 2; }

  bool has_files() const override { return true; }
  absl::Status Prepare(const Setup& setup) const override { return WriteImages(setup.scratch); }
  Dataset MakeDataset(const Setup& setup) const override { return Prepared(setup, kBatch); }
  std::unique_ptr<Reader> MakeReader(const Setup& /*setup*/) const override {
    return MakeBatchReader(kBatch);
  }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    PENSTOCK_ASSIGN_OR_RETURN(std::vector<std::string> jpegs, ReadImages(setup.scratch));
    return std::make_unique<BareLoopLimit>(std::move(jpegs));
  }
};

class Fed final : public Workload {
 public:
  std::string_view name() const override { return "I2"; }
  std::string_view question() const override {
    return "I1 in batches of 400 for a trainer that computes 0.224 s on each: its share of time";
  }
  std::vector<int64_t> sizes() const override { return {kFedBatch * kImageBytes}; }
  bool sized() const override { return false; }
  double step_s() const override { return kStep; }
  int64_t max_outstanding_requests() const override { return 2; }

  bool has_files() const override { return true; }
  absl::Status Prepare(const Setup& setup) const override { return WriteImages(setup.scratch); }
  Dataset MakeDataset(const Setup& setup) const override { return Prepared(setup, kFedBatch); }
  std::unique_ptr<Reader> MakeReader(const Setup& /*setup*/) const override {
    return MakeBatchReader(kFedBatch);
  }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    return MakeBar("computes 0.224 s", 1 / kStep, setup.element_bytes);
  }
};

}  // namespace

const Workload& I2() {
  static const Fed& i2 = *new Fed;
  return i2;
}

const Workload& I1() {
  static const Images& i1 = *new Images;
  return i1;
}

}  // namespace penstock::bench
