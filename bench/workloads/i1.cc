// SPDX-License-Identifier: Apache-2.0
// I1: JPEG files of 500 × 375. A random region of each is resized to 224 × 224 and mirrored half of
// the time, in batches of 256. The limit is hand-written code that does the same on one core. The
// rate is in images for each CPU-second of the workers. I1-dct: I1 with photographs of 2,000 ×
// 1,500, which the decoder may scale; the limit does not scale. I1-shuffle: I1 with shuffled file
// names, compared with I1. I2: I1 in batches of 25 for trainers that compute 0.224 s on each. Such
// a trainer is a sixteenth as fast as an H100 that trains ResNet-50 in MLPerf Storage. The figure
// of I2 is the share of time in which trainers compute.
#include <unistd.h>

#include "bench/interrupt.h"
#include "bench/jpeg.h"
#include "bench/limits/limits.h"
#include "bench/measure.h"
#include "bench/service.h"
#include "bench/workload.h"
#include "bench/workloads/images.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

constexpr int64_t kImageBatch = 256;
constexpr int64_t kImageBatchBytes = kImageBatch * kImageBytes;

constexpr int64_t kFedBatch = 25;
constexpr double kFedStep = 0.224;  // seconds

constexpr int64_t kShuffleBuffer = 1024;  // names

Dataset Prepared(const Setup& setup, int64_t batch, int64_t shuffle_buffer = 0,
                 JpegScaling scaling = JpegScaling::kExact) {
  return ImageBatches(
      setup.scratch, batch,
      [scaling](const Expr& x) {
        return DecodeJpeg("", {.scaling = scaling})
            .RandomResizedCrop(kSide, kSide)
            .RandomFlip()(ReadFile(x[1]));
      },
      shuffle_buffer);
}

class BareLoopLimit final : public Side {
 public:
  BareLoopLimit(std::vector<std::string> jpegs, int64_t batch)
      : jpegs_(std::move(jpegs)),
        batch_(batch),
        images_(batch * kImageBytes),
        roles_{{"limit", {::getpid()}}} {}

  std::string name() const override { return "libjpeg loop"; }
  const Roles& roles() const override { return roles_; }

  absl::StatusOr<Done> Read(double seconds) override {
    const double start = Now();
    double now = start;
    int64_t images = 0;
    for (; !Interrupted() && now < start + seconds; now = Now(), ++images, ++number_) {
      loop_.Run(jpegs_[number_ % jpegs_.size()], {.seed = 17, .element = number_},
                images_.data() + static_cast<int64_t>(number_ % batch_) * kImageBytes);
    }
    return Done{.seconds = now - start,
                .elements = static_cast<double>(images) / static_cast<double>(batch_),
                .bytes = images * kImageBytes};
  }

 private:
  const std::vector<std::string> jpegs_;
  const int64_t batch_;
  std::vector<uint8_t> images_;
  BareLoop loop_;
  Roles roles_;
  uint64_t number_ = 0;
};

absl::StatusOr<std::unique_ptr<Side>> MakeBareLoopLimit(const Setup& setup, int64_t batch) {
  ASSIGN_OR_RETURN(std::vector<std::string> jpegs, ReadImages(setup.scratch));
  return std::make_unique<BareLoopLimit>(std::move(jpegs), batch);
}

class Images : public Workload {
 public:
  std::string_view name() const override { return "I1"; }
  std::string_view question() const override {
    return "JPEG files to batches of 256 images of 224 x 224, by CPU-second of the workers";
  }
  std::vector<int64_t> sizes() const override { return {kImageBatchBytes}; }
  bool sized() const override { return false; }
  Basis basis() const override { return Basis::kElementsPerWorkerCpuSecond; }
  int64_t max_outstanding_requests() const override { return 2; }

  bool has_files() const override { return true; }
  absl::Status Prepare(const Setup& setup) const override { return WriteImages(setup.scratch); }
  Dataset MakeDataset(const Setup& setup) const override { return Prepared(setup, kImageBatch); }
  std::unique_ptr<Reader> MakeReader(const Setup& /*setup*/) const override {
    return MakeBatchReader(kImageBatch);
  }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    return MakeBareLoopLimit(setup, kImageBatch);
  }
};

class Scaled final : public Images {
 public:
  std::string_view name() const override { return "I1-dct"; }
  std::string_view question() const override {
    return "I1 from photographs of 2,000 x 1,500, scaled while they are decoded";
  }
  absl::Status Prepare(const Setup& setup) const override {
    return WriteImages(setup.scratch, kPhotograph);
  }
  Dataset MakeDataset(const Setup& setup) const override {
    return Prepared(setup, kImageBatch, 0, JpegScaling::kDct);
  }
};

class Shuffled final : public Images {
 public:
  std::string_view name() const override { return "I1-shuffle"; }
  std::string_view question() const override {
    return "I1 with its file names shuffled, buffer 1,024, compared with I1: the cost of a shuffle";
  }
  Basis basis() const override { return Basis::kElementsPerSecond; }

  Dataset MakeDataset(const Setup& setup) const override {
    return Prepared(setup, kImageBatch, kShuffleBuffer);
  }
  std::unique_ptr<Reader> MakeReader(const Setup& /*setup*/) const override {
    return MakeShuffledReader(kImageBatch, kShuffleBuffer);
  }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    Setup plain = setup;
    plain.workload = "I1";
    return StartService(plain, "I1");
  }
};

class Fed final : public Workload {
 public:
  std::string_view name() const override { return "I2"; }
  std::string_view question() const override {
    return "I1 in batches of 25 for k trainers that compute 0.224 s on each";
  }
  std::vector<int64_t> sizes() const override { return {kFedBatch * kImageBytes}; }
  bool sized() const override { return false; }
  std::vector<Shape> shapes() const override {
    return {
        {.consumers = 1}, {.consumers = 2}, {.consumers = 4}, {.consumers = 8}, {.consumers = 16}};
  }
  double step_s() const override { return kFedStep; }
  int64_t max_outstanding_requests() const override { return 2; }

  bool has_files() const override { return true; }
  absl::Status Prepare(const Setup& setup) const override { return WriteImages(setup.scratch); }
  Dataset MakeDataset(const Setup& setup) const override { return Prepared(setup, kFedBatch); }
  std::unique_ptr<Reader> MakeReader(const Setup& setup) const override {
    return MakeBatchReader(kFedBatch, setup.consumers == 1);
  }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<Side> loop, MakeBareLoopLimit(setup, kFedBatch));
    return MakePacedLimit(std::move(loop), setup.consumers / kFedStep);
  }
};

}  // namespace

const Workload& I2() {
  static const Fed& i2 = *new Fed;
  return i2;
}

const Workload& I1Dct() {
  static const Scaled& scaled = *new Scaled;
  return scaled;
}

const Workload& I1Shuffle() {
  static const Shuffled& shuffled = *new Shuffled;
  return shuffled;
}

const Workload& I1() {
  static const Images& i1 = *new Images;
  return i1;
}

}  // namespace penstock::bench
