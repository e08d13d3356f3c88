// SPDX-License-Identifier: Apache-2.0
// Last steps of preparing a batch that a GPU does better than the CPUs which made it:
// images as bytes to planes of numbers, ragged rows padded, rows gathered. What crosses
// the wire and the bus is then the smaller form.
//
//   RETURN_IF_ERROR(batch.ReadyOn(stream));
//   ps::ImagesToPlanes images{.images = batch["image"].raw(), .batch = 64, .height = 224,
//                             .width = 224, .dtype = ps::kFloat16, .planes = planes};
//   RETURN_IF_ERROR(
//       ps::LaunchStage(batch.device(), stream, images.Normalized(mean, deviation)));
//
// Steps are plain values with addresses in them: what they read and write belongs to the
// caller, and stays as it is until the stream has done them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "absl/status/status.h"
#include "penstock/dtype.h"

namespace penstock {

// Images of uint8 [batch, height, width, channels] to planes of `dtype`
// [batch, channels, height, width]: of each value pixel × scale + offset of its channel,
// computed in float32 with one rounding and rounded once more to `dtype`.
struct ImagesToPlanes {
  const void* images = nullptr;
  int64_t batch = 0;
  int64_t height = 0;
  int64_t width = 0;
  int channels = 3;        // 1 to 4
  DType dtype = kFloat32;  // or kFloat16, kBFloat16
  void* planes = nullptr;
  std::array<float, 4> scale = {1, 1, 1, 1};
  std::array<float, 4> offset = {0, 0, 0, 0};

  // With (pixel / 255 − mean) / deviation of each channel.
  ImagesToPlanes Normalized(const std::array<float, 4>& mean,
                            const std::array<float, 4>& deviation) const;
};

// Ragged rows of one level to a dense [rows, width], filled up behind each with
// `padding`; what is longer is cut off.
struct RaggedToPadded {
  const void* values = nullptr;
  // rows + 1 of them, ascending from 0, where the device reads: its own memory, or
  // page-locked host memory.
  const int64_t* row_splits = nullptr;
  int64_t rows = 0;
  int64_t width = 0;       // values of a padded row
  size_t value_bytes = 0;  // 1, 2, 4 or 8
  void* padded = nullptr;
  uint64_t padding = 0;  // the bytes of one value, the lowest first
};

// Rows of `row_bytes` each by their numbers: out[i] = rows[indices[i]]. A number that is
// no row's gives zeros.
struct GatherRows {
  const void* rows = nullptr;
  int64_t num_rows = 0;
  size_t row_bytes = 0;
  const int64_t* indices = nullptr;  // where the device reads, as row_splits
  int64_t count = 0;
  void* out = nullptr;
};

using StageStep = std::variant<ImagesToPlanes, RaggedToPadded, GatherRows>;

// InvalidArgument naming the member that makes no sense.
absl::Status CheckStage(const StageStep& step);

// Does it on the CPU, on memory of the host: what a device does gives the same bits.
absl::Status RunStage(const StageStep& step);

// Has device number `device` do it, in its turn on `stream` (a cudaStream_t; nullptr: the
// default stream). Does not wait. NotFound without a device, Unimplemented in a build
// whose CUDA toolkit had no compiler.
absl::Status LaunchStage(int device, void* stream, const StageStep& step);

}  // namespace penstock
