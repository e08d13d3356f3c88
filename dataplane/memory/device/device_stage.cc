// SPDX-License-Identifier: Apache-2.0
// Steps of a stage on the CPU: the reference for the kernels.
#include "penstock/device_stage.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// The maximum number of values in a step. Below it no product of sizes overflows.
constexpr int64_t kMostValues = int64_t{1} << 48;

absl::Status CheckSizes(std::initializer_list<int64_t> sizes, std::string_view what) {
  int64_t product = 1;
  for (const int64_t size : sizes) {
    if (size < 0 || __builtin_mul_overflow(product, size, &product) || product > kMostValues) {
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(what), " have an invalid size: ", size));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckThere(const void* address, int64_t values, std::string_view what) {
  if (address != nullptr || values == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(std::string(what), " must not be null"));
}

absl::Status Check(const ImagesToPlanes& step) {
  if (step.channels < 1 || step.channels > 4) {
    return absl::InvalidArgumentError(absl::StrCat("channels must be 1 to 4, not ", step.channels));
  }
  if (step.dtype != kFloat16 && step.dtype != kBFloat16 && step.dtype != kFloat32) {
    return absl::InvalidArgumentError(absl::StrCat(
        "planes must be float16, bfloat16 or float32, not ", std::string(Name(step.dtype))));
  }
  RETURN_IF_ERROR(CheckSizes({step.batch, step.height, step.width, step.channels}, "images"));
  const int64_t values = step.batch * step.height * step.width;
  RETURN_IF_ERROR(CheckThere(step.images, values, "images"));
  return CheckThere(step.planes, values, "planes");
}

absl::Status Check(const RaggedToPadded& step) {
  if (step.value_bytes != 1 && step.value_bytes != 2 && step.value_bytes != 4 &&
      step.value_bytes != 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("value_bytes must be 1, 2, 4 or 8, not ", step.value_bytes));
  }
  RETURN_IF_ERROR(CheckSizes({step.rows, step.width}, "rows and width"));
  RETURN_IF_ERROR(CheckThere(step.row_splits, step.rows, "row_splits"));
  return CheckThere(step.padded, step.rows * step.width, "padded");
}

absl::Status Check(const GatherRows& step) {
  if (step.row_bytes > static_cast<size_t>(kMostValues))
    return absl::InvalidArgumentError("row_bytes is too large");
  const auto row_bytes = static_cast<int64_t>(step.row_bytes);
  RETURN_IF_ERROR(CheckSizes({step.num_rows, row_bytes}, "rows"));
  RETURN_IF_ERROR(CheckSizes({step.count, row_bytes}, "gathered rows"));
  RETURN_IF_ERROR(CheckThere(step.rows, step.num_rows * row_bytes, "rows"));
  RETURN_IF_ERROR(CheckThere(step.indices, step.count, "indices"));
  return CheckThere(step.out, step.count * row_bytes, "out");
}

template <class T>
void Run(const ImagesToPlanes& step, T* planes) {
  const auto* images = static_cast<const uint8_t*>(step.images);
  const int64_t pixels = step.height * step.width;
  for (int64_t image = 0; image < step.batch; ++image) {
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      for (int channel = 0; channel < step.channels; ++channel) {
        const float value =
            std::fma(static_cast<float>(images[(image * pixels + pixel) * step.channels + channel]),
                     step.scale[channel], step.offset[channel]);
        planes[(image * step.channels + channel) * pixels + pixel] = T(value);
      }
    }
  }
}

void Run(const ImagesToPlanes& step) {
  if (step.dtype == kFloat32) return Run(step, static_cast<float*>(step.planes));
  if (step.dtype == kFloat16) return Run(step, static_cast<Float16*>(step.planes));
  return Run(step, static_cast<BFloat16*>(step.planes));
}

void Run(const RaggedToPadded& step) {
  auto* to = static_cast<std::byte*>(step.padded);
  const auto* from = static_cast<const std::byte*>(step.values);
  for (int64_t row = 0; row < step.rows; ++row) {
    const int64_t length = step.row_splits[row + 1] - step.row_splits[row];
    for (int64_t i = 0; i < step.width; ++i, to += step.value_bytes) {
      if (i < length)
        std::memcpy(to, from + (step.row_splits[row] + i) * step.value_bytes, step.value_bytes);
      else
        std::memcpy(to, &step.padding, step.value_bytes);
    }
  }
}

void Run(const GatherRows& step) {
  auto* to = static_cast<std::byte*>(step.out);
  for (int64_t i = 0; i < step.count; ++i, to += step.row_bytes) {
    const int64_t row = step.indices[i];
    if (row >= 0 && row < step.num_rows)
      std::memcpy(to, static_cast<const std::byte*>(step.rows) + row * step.row_bytes,
                  step.row_bytes);
    else
      std::memset(to, 0, step.row_bytes);
  }
}

}  // namespace

ImagesToPlanes ImagesToPlanes::Normalized(const std::array<float, 4>& mean,
                                          const std::array<float, 4>& deviation) const {
  ImagesToPlanes step = *this;
  for (size_t channel = 0; channel < mean.size(); ++channel) {
    const double inverse = 1.0 / static_cast<double>(deviation[channel]);
    step.scale[channel] = static_cast<float>(inverse / 255.0);
    step.offset[channel] = static_cast<float>(-static_cast<double>(mean[channel]) * inverse);
  }
  return step;
}

absl::Status CheckStage(const StageStep& step) {
  return std::visit([](const auto& its) { return Check(its); }, step);
}

absl::Status RunStage(const StageStep& step) {
  RETURN_IF_ERROR(CheckStage(step));
  std::visit([](const auto& its) { Run(its); }, step);
  return absl::OkStatus();
}

}  // namespace penstock
