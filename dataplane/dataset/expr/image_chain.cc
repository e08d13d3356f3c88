// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/expr/image_chain.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "dataplane/dataset/expr/image_steps.h"
#include "dataplane/dataset/expr/jpeg_decoder.h"
#include "dataplane/dataset/expr/random.h"
#include "dataplane/dataset/expr/resize.h"
#include "penstock/map.h"
#include "penstock/status.h"

namespace penstock {
namespace {

// Which step of a chain an operation is; none for others.
std::optional<int> StageOf(const OpDef& op) {
  if (op.op == "CenterCrop" || op.op == "RandomResizedCrop") return 1;
  if (op.op == "Resize") return 2;
  if (op.op == "RandomFlip") return 3;
  return std::nullopt;
}

struct Sides {
  int64_t height = 0, width = 0;
};

// A chain's operations as parameters.
struct Plan {
  int channels = 3;
  JpegScaling scaling = JpegScaling::kExact;
  std::optional<Sides> center;
  struct Random {
    double min_area, max_area;
    int64_t number;
  };
  std::optional<Random> random;
  std::optional<Sides> size;
  struct Flip {
    double probability;
    int64_t number;
  };
  std::optional<Flip> flip;
};

Sides SidesOf(const OpDef& op) {
  return {Get<int64_t>(op.attrs, "height"), Get<int64_t>(op.attrs, "width")};
}

Plan PlanOf(const FunctionDef& def, const ImageChain& chain) {
  Plan plan;
  for (size_t place : chain) {
    const OpDef& op = def.ops[place];
    if (op.op == "DecodeJpegImage") {
      plan.channels = static_cast<int>(Get<int64_t>(op.attrs, "channels"));
      plan.scaling = static_cast<JpegScaling>(Get<int64_t>(op.attrs, "scaling"));
    } else if (op.op == "CenterCrop") {
      plan.center = SidesOf(op);
    } else if (op.op == "RandomResizedCrop") {
      plan.random =
          Plan::Random{Get<double>(op.attrs, "min_area"), Get<double>(op.attrs, "max_area"),
                       Get<int64_t>(op.attrs, "random")};
      plan.size = SidesOf(op);
    } else if (op.op == "Resize") {
      plan.size = SidesOf(op);
    } else {
      plan.flip =
          Plan::Flip{Get<double>(op.attrs, "probability"), Get<int64_t>(op.attrs, "random")};
    }
  }
  return plan;
}

absl::StatusOr<Region> RegionOf(const Plan& plan, const RandomKey& key,
                                const JpegDecoder::Size& size) {
  if (plan.center)
    return CenterRegion(size.height, size.width, plan.center->height, plan.center->width);
  if (plan.random) {
    return RandomRegion(KeyOfOp(key, plan.random->number), size.height, size.width,
                        plan.random->min_area, plan.random->max_area);
  }
  return Region{0, 0, size.width, size.height};
}

// The fewest eighths that still leave the region as large as the result.
int EighthsFor(const Region& region, const Sides& result) {
  for (int eighths : {1, 2, 4}) {
    if (region.height * eighths >= result.height * 8 && region.width * eighths >= result.width * 8)
      return eighths;
  }
  return 8;
}

// The region in an image scaled to `size`: every pixel that it touches.
Region Scaled(const Region& region, int eighths, const JpegDecoder::Size& size) {
  const int64_t x = region.x * eighths / 8;
  const int64_t y = region.y * eighths / 8;
  const int64_t right = std::min(size.width, ((region.x + region.width) * eighths + 7) / 8);
  const int64_t bottom = std::min(size.height, ((region.y + region.height) * eighths + 7) / 8);
  return {x, y, right - x, bottom - y};
}

void CopyRows(const Pixels& pixels, const Region& region, int channels, bool mirror, uint8_t* out) {
  const int64_t row_bytes = region.width * channels;
  for (int64_t y = 0; y < region.height; ++y, out += row_bytes) {
    const uint8_t* row = pixels.first + y * pixels.row_bytes;
    if (!mirror) {
      std::memcpy(out, row, row_bytes);
      continue;
    }
    for (int64_t x = 0; x < region.width; ++x)
      std::memcpy(out + x * channels, row + (region.width - 1 - x) * channels, channels);
  }
}

absl::Status RunChain(const Plan& plan, OpRun& run) {
  JpegDecoder& decoder = JpegDecoder::OfThisThread();
  ASSIGN_OR_RETURN(JpegDecoder::Size size, decoder.Open(run.input(0).string(), plan.channels));
  ASSIGN_OR_RETURN(Region region, RegionOf(plan, run.random(), size));
  const bool mirror =
      plan.flip && RandomMirror(KeyOfOp(run.random(), plan.flip->number), plan.flip->probability);
  const Sides result = plan.size.value_or(Sides{region.height, region.width});
  int eighths = 8;
  if (plan.size && plan.scaling == JpegScaling::kDct) {
    eighths = EighthsFor(region, result);
    region = Scaled(region, eighths, decoder.ScaledSize(eighths));
  }
  ASSIGN_OR_RETURN(uint8_t* const out,
                   run.PlaceAs<uint8_t>(0, {result.height, result.width, plan.channels}));
  ASSIGN_OR_RETURN(const Pixels pixels, decoder.Read(region, eighths, run.arena()));
  if (!plan.size) {
    CopyRows(pixels, region, plan.channels, mirror, out);
    return absl::OkStatus();
  }
  const ImageView<uint8_t> view{.first = pixels.first,
                                .height = region.height,
                                .width = region.width,
                                .channels = plan.channels,
                                .row_values = pixels.row_bytes};
  ResizeBilinear(view, result.height, result.width, mirror, run.arena(), out);
  return absl::OkStatus();
}

}  // namespace

std::vector<ImageChain> FindImageChains(const FunctionDef& def) {
  // The operations that use each value; a result counts as a use by none.
  const size_t inputs = def.input.leaves().size();
  constexpr size_t kResult = SIZE_MAX;
  std::vector<std::vector<size_t>> users(inputs);
  std::vector<size_t> first_value;
  for (size_t i = 0; i < def.ops.size(); ++i) {
    first_value.push_back(users.size());
    users.resize(users.size() + def.ops[i].outputs.size());
    for (uint32_t input : def.ops[i].inputs) users[input].push_back(i);
  }
  for (uint32_t result : def.results) users[result].push_back(kResult);

  std::vector<ImageChain> chains;
  for (size_t i = 0; i < def.ops.size(); ++i) {
    if (def.ops[i].op != "DecodeJpegImage") continue;
    ImageChain chain{i};
    int stage = 0;
    for (;;) {
      const std::vector<size_t>& next = users[first_value[chain.back()]];
      if (next.size() != 1 || next[0] == kResult) break;
      const std::optional<int> next_stage = StageOf(def.ops[next[0]]);
      if (!next_stage || *next_stage <= stage) break;
      // A random crop is a resize too.
      stage = def.ops[next[0]].op == "RandomResizedCrop" ? 2 : *next_stage;
      chain.push_back(next[0]);
    }
    if (chain.size() > 1) chains.push_back(std::move(chain));
  }
  return chains;
}

Kernel MakeImageChain(const FunctionDef& def, const ImageChain& chain) {
  return [plan = PlanOf(def, chain)](OpRun& run) { return RunChain(plan, run); };
}

}  // namespace penstock
