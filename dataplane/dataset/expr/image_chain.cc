// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/expr/image_chain.h"

#include <cstring>
#include <optional>
#include <utility>

#include "dataplane/dataset/expr/image_steps.h"
#include "dataplane/dataset/image/color_steps.h"
#include "dataplane/dataset/image/image_decoder.h"
#include "dataplane/dataset/image/resize.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// The order of a chain's steps.
enum Stage : int { kDecode, kCrop, kResize, kFlip, kNormalize };

// Returns which step of a chain the operation is; nullopt if it is none.
std::optional<Stage> StageOf(const OpDef& op) {
  if (CropPlanOf(op)) return kCrop;
  if (op.op == "Resize") return kResize;
  if (FlipPlanOf(op)) return kFlip;
  if (op.op == "Normalize") return kNormalize;
  return std::nullopt;
}

// The parameters of a chain's operations.
struct ImagePlan {
  DecodePlan decode;
  std::optional<CropPlan> crop;
  std::optional<ResizePlan> resize;
  std::vector<FlipPlan> flips;
  std::optional<Normalization> normalize;
};

ImagePlan ImagePlanOf(const FunctionDef& def, const ImageChain& chain) {
  ImagePlan plan;
  plan.decode = *DecodePlanOf(def.ops[chain.front()]);
  for (size_t i = 1; i < chain.size(); ++i) {
    const OpDef& op = def.ops[chain[i]];
    if (auto crop = CropPlanOf(op)) plan.crop = crop;
    if (auto resize = ResizePlanOf(op)) plan.resize = resize;
    if (auto flip = FlipPlanOf(op)) plan.flips.push_back(*flip);
    if (op.op == "Normalize") plan.normalize = NormalizationOf(op.attrs);
  }
  return plan;
}

struct Mirrors {
  bool left_right = false, up_down = false;
};

Mirrors MirrorsOf(const ImagePlan& plan, const RandomKey& key) {
  Mirrors mirrors;
  for (const FlipPlan& flip : plan.flips) {
    bool& mirror = flip.up_down ? mirrors.up_down : mirrors.left_right;
    mirror ^= flip.Flips(key);
  }
  return mirrors;
}

void CopyRow(const uint8_t* in, int64_t width, int64_t pixel_bytes, bool mirror, uint8_t* out) {
  if (!mirror) {
    std::memcpy(out, in, width * pixel_bytes);
    return;
  }
  for (int64_t x = 0; x < width; ++x)
    std::memcpy(out + x * pixel_bytes, in + (width - 1 - x) * pixel_bytes, pixel_bytes);
}

// Writes an image of `size` to the output, optionally normalised and optionally upside down.
// make(y, memory) makes row y of the image.
template <class F>
absl::Status WriteRows(const ImagePlan& plan, const ImageSize& size, bool up_down, OpRun& run,
                       const F& make) {
  const DecodeOptions& options = plan.decode.options;
  const int64_t row_values = size.width * options.channels;
  const int64_t row_bytes = row_values * static_cast<int64_t>(SizeOf(options.dtype));
  const auto row_of = [&](int64_t y) { return up_down ? size.height - 1 - y : y; };
  ASSIGN_OR_RETURN(const absl::Span<std::byte> out,
                   run.Place(0, {size.height, size.width, options.channels}));
  if (!plan.normalize) {
    auto* const bytes = reinterpret_cast<uint8_t*>(out.data());
    for (int64_t y = 0; y < size.height; ++y) make(y, bytes + row_of(y) * row_bytes);
    return absl::OkStatus();
  }
  auto* const row = reinterpret_cast<uint8_t*>(run.Scratch(row_bytes));
  auto* const floats = reinterpret_cast<float*>(out.data());
  for (int64_t y = 0; y < size.height; ++y) {
    make(y, row);
    plan.normalize->Run(row, size.width, floats + row_of(y) * row_values);
  }
  return absl::OkStatus();
}

absl::Status RunChain(const ImagePlan& plan, OpRun& run) {
  Arena& arena = run.arena();
  ASSIGN_OR_RETURN(ImageDecoder decoder,
                   ImageDecoder::Open(run.input(0).string(), plan.decode, arena));
  Region region{0, 0, decoder.size().width, decoder.size().height};
  if (plan.crop) {
    ASSIGN_OR_RETURN(region, plan.crop->RegionIn(decoder.size(), run.random()));
  }
  const Mirrors mirrors = MirrorsOf(plan, run.random());
  const ImageSize cropped{.height = region.height, .width = region.width};
  if (!plan.resize) {
    ASSIGN_OR_RETURN(const ImageDecoder::Part part, decoder.Read(region, cropped));
    const DecodeOptions& options = plan.decode.options;
    const auto pixel_bytes = static_cast<int64_t>(options.channels * SizeOf(options.dtype));
    return WriteRows(plan, cropped, mirrors.up_down, run, [&](int64_t y, uint8_t* row) {
      CopyRow(part.pixels.first + y * part.pixels.row_bytes, cropped.width, pixel_bytes,
              mirrors.left_right, row);
    });
  }
  const ImageSize& size = plan.resize->size;
  ASSIGN_OR_RETURN(const ImageDecoder::Part part, decoder.Read(region, size));
  const ImageView<uint8_t> view{.first = part.pixels.first,
                                .height = part.size.height,
                                .width = part.size.width,
                                .channels = plan.decode.options.channels,
                                .row_values = part.pixels.row_bytes};
  Resizer<uint8_t> resizer(view, size, plan.resize->options, mirrors.left_right, arena);
  return WriteRows(plan, size, mirrors.up_down, run,
                   [&](int64_t y, uint8_t* row) { resizer.Row(y, row); });
}

}  // namespace

std::vector<ImageChain> FindImageChains(const FunctionDef& def) {
  // The operations that use each value. A result has one more user, kResult.
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
    if (!DecodePlanOf(def.ops[i])) continue;
    ImageChain chain{i};
    Stage stage = kDecode;
    for (;;) {
      const std::vector<size_t>& next = users[first_value[chain.back()]];
      if (next.size() != 1 || next[0] == kResult) break;
      const OpDef& op = def.ops[next[0]];
      const std::optional<Stage> next_stage = StageOf(op);
      if (!next_stage || *next_stage < stage || (*next_stage == stage && stage != kFlip)) break;
      // A crop that resizes (RandomResizedCrop) is a resize too.
      stage = ResizePlanOf(op) ? kResize : *next_stage;
      chain.push_back(next[0]);
    }
    if (chain.size() > 1) chains.push_back(std::move(chain));
  }
  return chains;
}

Kernel MakeImageChain(const FunctionDef& def, const ImageChain& chain) {
  return [plan = ImagePlanOf(def, chain)](OpRun& run) { return RunChain(plan, run); };
}

}  // namespace penstock
