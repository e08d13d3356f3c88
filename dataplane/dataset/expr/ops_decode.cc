// SPDX-License-Identifier: Apache-2.0
// Files of images to pixels. A chain behind them runs as one: image_chain.cc.
#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/jpeg_decoder.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "penstock/image.h"
#include "penstock/status.h"

namespace penstock {
namespace {

using Specs = std::vector<TensorSpec>;

absl::StatusOr<Specs> InferDecodeJpeg(const Attrs& attrs, InputSpecs inputs) {
  if (inputs[0].dtype != kString || inputs[0].shape != Shape())
    return absl::InvalidArgumentError(
        absl::StrCat("argument 0 is ", inputs[0].ToString(), ", not a scalar string"));
  const int64_t channels = Get<int64_t>(attrs, "channels");
  if (channels != 1 && channels != 3)
    return absl::InvalidArgumentError(absl::StrCat("channels is ", channels, ", not 1 or 3"));
  const int64_t scaling = Get<int64_t>(attrs, "scaling");
  if (scaling < 0 || scaling > static_cast<int64_t>(JpegScaling::kDct))
    return absl::InvalidArgumentError(absl::StrCat("no scaling number ", scaling));
  return Specs{Dense(kUInt8, {kUnknownDim, kUnknownDim, channels})};
}

absl::StatusOr<Kernel> MakeDecodeJpeg(const OpDef& def, InputSpecs) {
  return Kernel([channels = Get<int64_t>(def.attrs, "channels")](OpRun& run) -> absl::Status {
    JpegDecoder& decoder = JpegDecoder::OfThisThread();
    ASSIGN_OR_RETURN(const JpegDecoder::Size size,
                     decoder.Open(run.input(0).string(), static_cast<int>(channels)));
    ASSIGN_OR_RETURN(uint8_t* const out,
                     run.PlaceAs<uint8_t>(0, {size.height, size.width, channels}));
    return decoder.ReadAll(out, run.arena());
  });
}

}  // namespace

std::vector<OpRow> DecodeOps() {
  constexpr size_t kInt = kAttrIndex<int64_t>;
  return {
      {.name = "DecodeJpegImage",
       .attrs = {{"channels", kInt}, {"scaling", kInt}},
       .infer = InferDecodeJpeg,
       .make = MakeDecodeJpeg},
  };
}

Expr DecodeJpegImage(const Expr& bytes, DecodeOptions options) {
  return Apply1(
      "DecodeJpegImage",
      {{"channels", int64_t{options.channels}}, {"scaling", static_cast<int64_t>(options.scaling)}},
      {bytes});
}

}  // namespace penstock
