// SPDX-License-Identifier: Apache-2.0
// M1: samples of lognormal(5, 1) tokens and 0 to 8 images of 224 × 224 × 3. An image costs as much
// as 576 tokens. Batches have up to 16,384 such tokens, for k trainers that step together and
// compute by cost. Rounds of about equal cost are compared with a shared job of the same trainers
// without rounds.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "bench/service.h"
#include "bench/workload.h"
#include "bench/workloads/lengths.h"
#include "include/status_macros.h"
#include "penstock/register.h"

namespace penstock::bench {
namespace {

constexpr int64_t kSampleImageBytes = int64_t{224} * 224 * 3;
constexpr int64_t kTokensPerImage = 576;
constexpr int64_t kBudget = 16'384;  // tokens of a batch
constexpr double kSecondsPerCost = 3e-6;

int64_t ImagesOf(int64_t number) {
  return static_cast<int64_t>(Mix(~static_cast<uint64_t>(number)) % 9);
}

// Maps number ≥ 1 to images, whose bytes are all the number's low byte, and tokens that count up
// from it.
absl::Status Sample(CallContext& call) {
  const int64_t number = call.inputs()[0].scalar<int64_t>();
  const int64_t of_images[] = {ImagesOf(number), kSampleImageBytes};
  const int64_t of_tokens[] = {LengthOf(number)};
  ASSIGN_OR_RETURN(absl::Span<uint8_t> images, call.OutputAs<uint8_t>(0, of_images));
  ASSIGN_OR_RETURN(absl::Span<int32_t> tokens, call.OutputAs<int32_t>(1, of_tokens));
  std::memset(images.data(), static_cast<uint8_t>(number), images.size());
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(number + i);
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("bench.sample", 1,
                      Spec::Dict({{"images", Dense(kUInt8, {kUnknownDim, kSampleImageBytes})},
                                  {"tokens", Dense(kInt32, {kUnknownDim})}}),
                      Sample);

class SampleReader final : public Reader {
 public:
  absl::StatusOr<int64_t> Take(const Element& batch) override {
    const Tensor images = batch["images"], tokens = batch["tokens"];
    const absl::Span<const int64_t> costs = batch["cost"].data<int64_t>();
    const int64_t most_images = images.dim(1), most_tokens = tokens.dim(1);
    for (int64_t row = 0; row < tokens.dim(0); ++row) {
      const int32_t* sequence = tokens.data<int32_t>().data() + row * most_tokens;
      const int64_t number = sequence[0], length = LengthOf(number), count = ImagesOf(number);
      bool right = length <= most_tokens && count <= most_images &&
                   costs[row] == length + count * kTokensPerImage;
      for (int64_t i = 0; right && i < most_tokens; ++i)
        right = sequence[i] == (i < length ? number + i : 0);
      for (int64_t i = 0; right && i < most_images; ++i) {
        const uint8_t* image =
            images.data<uint8_t>().data() + (row * most_images + i) * kSampleImageBytes;
        const auto due = static_cast<uint8_t>(i < count ? number : 0);
        for (int64_t at = 0; right && at < kSampleImageBytes; at += 4096) right = image[at] == due;
      }
      if (!right) {
        return absl::DataLossError(absl::StrCat("expected sample ", number, " in row ", row));
      }
    }
    return static_cast<int64_t>(images.data<uint8_t>().size() +
                                tokens.data<int32_t>().size() * sizeof(int32_t));
  }
};

class Samples final : public Workload {
 public:
  std::string_view name() const override { return "M1"; }
  std::string_view question() const override {
    return "images and texts in batches of a token budget, in rounds of equal cost, for k trainers "
           "in "
           "step";
  }
  std::vector<int64_t> sizes() const override { return {4 << 20}; }  // approximate
  bool sized() const override { return false; }
  std::vector<Shape> shapes() const override {
    return {{.consumers = 2, .coordinated = true}, {.consumers = 4, .coordinated = true}};
  }
  double StepOf(const Element& batch) const override {
    int64_t cost = 0;
    for (const int64_t of_sample : batch["cost"].data<int64_t>()) cost += of_sample;
    return static_cast<double>(cost) * kSecondsPerCost;
  }
  bool in_step() const override { return true; }

  Dataset MakeDataset(const Setup& setup) const override {
    const std::vector<int64_t> boundaries = {64, 128, 256, 512, 768, 1152, 1728, 2592, 3888};
    std::vector<int64_t> batch_sizes;
    for (const int64_t boundary : boundaries) batch_sizes.push_back(kBudget / boundary);
    batch_sizes.push_back(kBudget / (8 * kTokensPerImage + 1024));
    const Dataset batches =
        Dataset::Range(1, int64_t{1} << 30)
            .Map([](const Expr& number) { return Call("bench.sample", number); })
            .Map([](const Expr& sample) {
              return Struct({{"images", sample["images"]},
                             {"tokens", sample["tokens"]},
                             {"cost", Size(sample["tokens"]) +
                                          ShapeOf(sample["images"])[0] * kTokensPerImage}});
            })
            .BucketBySequenceLength([](const Expr& sample) { return sample["cost"]; }, boundaries,
                                    batch_sizes);
    if (!setup.coordinated) return batches;
    return batches.Rounds(setup.consumers,
                          {.cost = [](const Expr& batch) { return ReduceSum(batch["cost"]); }});
  }
  std::unique_ptr<Reader> MakeReader(const Setup& /*setup*/) const override {
    return std::make_unique<SampleReader>();
  }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    Setup apart = setup;
    apart.coordinated = false;
    return StartService(apart, "uncoordinated");
  }
};

}  // namespace

const Workload& M1() {
  static const Samples& m1 = *new Samples;
  return m1;
}

}  // namespace penstock::bench
