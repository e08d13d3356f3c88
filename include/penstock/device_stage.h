// SPDX-License-Identifier: Apache-2.0
// The last steps in preparing a batch, if a GPU does them better than CPUs: converting images from
// bytes to planes of numbers, padding ragged rows, gathering rows. The network and the bus then
// carry the batch in its smaller form.
//
//   PENSTOCK_RETURN_IF_ERROR(batch.ReadyOn(stream));
//   ps::ImagesToPlanes images{.images = batch["image"].raw(), .batch = 64, .height = 224,
//                             .width = 224, .dtype = ps::kFloat16, .planes = planes};
//   PENSTOCK_RETURN_IF_ERROR(
//       ps::LaunchStage(batch.device(), stream, images.Normalized(mean, deviation)));
//
// Steps are plain values that hold addresses. The memory that they read and write belongs to the
// caller, who must not change or free it until the stream has done the steps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "absl/status/status.h"
#include "penstock/dtype.h"

#pragma GCC visibility push(default)
namespace penstock {

// Converts images of uint8 [batch, height, width, channels] to planes of `dtype` [batch, channels,
// height, width]. Each value is pixel × scale + offset of its channel, computed in float32 with one
// rounding, then rounded to `dtype`.
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

  // Returns this step with (pixel / 255 − mean) / deviation of each channel.
  ImagesToPlanes Normalized(const std::array<float, 4>& mean,
                            const std::array<float, 4>& deviation) const;
};

// Pads ragged rows of one level to a dense [rows, width], with `padding` after each shorter row.
// Longer rows are cut off.
struct RaggedToPadded {
  const void* values = nullptr;
  // rows + 1 numbers, ascending from 0, in memory that the device can read: its own, or page-locked
  // host memory.
  const int64_t* row_splits = nullptr;
  int64_t rows = 0;
  int64_t width = 0;       // values per padded row
  size_t value_bytes = 0;  // 1, 2, 4 or 8
  void* padded = nullptr;
  uint64_t padding = 0;  // the bytes of one value, lowest first
};

// Gathers rows of `row_bytes` each: out[i] = rows[indices[i]]. An index outside [0, num_rows)
// yields zeros.
struct GatherRows {
  const void* rows = nullptr;
  int64_t num_rows = 0;
  size_t row_bytes = 0;
  const int64_t* indices = nullptr;  // in memory that the device can read, like row_splits
  int64_t count = 0;
  void* out = nullptr;
};

using StageStep = std::variant<ImagesToPlanes, RaggedToPadded, GatherRows>;

// Checks the step's members. InvalidArgument, with the name of the member, if one is not valid.
absl::Status CheckStage(const StageStep& step);

// Runs the step on the CPU, on host memory. A device computes the same bits for RaggedToPadded and
// GatherRows, and values within one unit in the last place for ImagesToPlanes.
absl::Status RunStage(const StageStep& step);

// Queues the step for device number `device` on `stream` (a cudaStream_t; nullptr: the default
// stream). Does not wait. NotFound if there is no such device. Unimplemented in a build whose CUDA
// toolkit had no compiler.
absl::Status LaunchStage(int device, void* stream, const StageStep& step);

}  // namespace penstock
#pragma GCC visibility pop
