// SPDX-License-Identifier: Apache-2.0
// Decodes image files into pixels. A chain after a decoder runs as one step: image_chain.cc.
#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/image_steps.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/image/image_decoder.h"
#include "include/status_macros.h"
#include "penstock/image.h"

namespace penstock {
namespace {

using Specs = std::vector<TensorSpec>;

absl::Status CheckBytes(const TensorSpec& spec) {
  if (spec.dtype == kString && spec.shape == Shape()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("argument 0 is ", spec.ToString(), ", not a scalar string"));
}

absl::StatusOr<Specs> InferEightBits(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckBytes(inputs[0]));
  const int64_t channels = Get<int64_t>(attrs, "channels");
  if (channels != 1 && channels != 3)
    return absl::InvalidArgumentError(absl::StrCat("channels must be 1 or 3, not ", channels));
  const int64_t scaling = Get<int64_t>(attrs, "scaling");
  if (scaling < 0 || scaling > static_cast<int64_t>(JpegScaling::kDct))
    return absl::InvalidArgumentError(absl::StrCat("unknown scaling number ", scaling));
  return Specs{Dense(kUInt8, {kUnknownDim, kUnknownDim, channels})};
}

absl::StatusOr<Specs> InferPng(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckBytes(inputs[0]));
  const int64_t channels = Get<int64_t>(attrs, "channels");
  if (channels < 1 || channels > 4)
    return absl::InvalidArgumentError(absl::StrCat("channels must be 1 to 4, not ", channels));
  const DType dtype = Get<DType>(attrs, "dtype");
  if (dtype != kUInt8 && dtype != kUInt16)
    return absl::InvalidArgumentError(
        absl::StrCat("dtype must be uint8 or uint16, not ", Name(dtype)));
  return Specs{Dense(dtype, {kUnknownDim, kUnknownDim, channels})};
}

absl::StatusOr<Kernel> MakeDecode(const OpDef& def, InputSpecs) {
  return Kernel([plan = *DecodePlanOf(def)](OpRun& run) -> absl::Status {
    ASSIGN_OR_RETURN(ImageDecoder decoder,
                     ImageDecoder::Open(run.input(0).string(), plan, run.arena()));
    const ImageSize& size = decoder.size();
    ASSIGN_OR_RETURN(const absl::Span<std::byte> out,
                     run.Place(0, {size.height, size.width, plan.options.channels}));
    return decoder.ReadAll(reinterpret_cast<uint8_t*>(out.data()));
  });
}

Expr Decode(absl::string_view op, const Expr& bytes, const DecodeOptions& options) {
  if (op != "DecodePngImage" && options.dtype != kUInt8) {
    return Mistake(
        absl::InvalidArgumentError(absl::StrCat(op, ": dtype is ", Name(options.dtype),
                                                "; only DecodePng supports dtypes other than "
                                                "uint8")));
  }
  Attrs attrs = {{"channels", int64_t{options.channels}},
                 {"upright", options.orientation == Orientation::kUpright}};
  if (op == "DecodePngImage")
    attrs["dtype"] = options.dtype;
  else
    attrs["scaling"] = static_cast<int64_t>(options.scaling);
  return Apply1(op, std::move(attrs), {bytes});
}

}  // namespace

std::vector<OpRow> DecodeOps() {
  constexpr size_t kInt = kAttrIndex<int64_t>;
  constexpr size_t kBool = kAttrIndex<bool>;
  return {
      {.name = "DecodeJpegImage",
       .attrs = {{"channels", kInt}, {"scaling", kInt}, {"upright", kBool}},
       .infer = InferEightBits,
       .make = MakeDecode},
      {.name = "DecodePngImage",
       .attrs = {{"channels", kInt}, {"dtype", kAttrIndex<DType>}, {"upright", kBool}},
       .infer = InferPng,
       .make = MakeDecode},
      {.name = "DecodeImage",
       .attrs = {{"channels", kInt}, {"scaling", kInt}, {"upright", kBool}},
       .infer = InferEightBits,
       .make = MakeDecode},
  };
}

Expr DecodeJpegImage(const Expr& bytes, DecodeOptions options) {
  return Decode("DecodeJpegImage", bytes, options);
}
Expr DecodePngImage(const Expr& bytes, DecodeOptions options) {
  return Decode("DecodePngImage", bytes, options);
}
Expr DecodeImage(const Expr& bytes, DecodeOptions options) {
  return Decode("DecodeImage", bytes, options);
}

}  // namespace penstock
