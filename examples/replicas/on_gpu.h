// SPDX-License-Identifier: Apache-2.0
// Learning on a GPU: on_gpu.cc where the example is built with CUDA, else no_gpu.cc.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "lenet.h"
#include "penstock/device_element.h"

// Returns a replica's sums of a step, as LearnHere() in main.cc does: the gradient of
// LeNet::kWeights, then the loss and the rows. `batch`, of images and labels, is on a GPU; the call
// waits for it there. Any thread, one at a time for each GPU.
absl::StatusOr<std::vector<double>> LearnOnGpu(const lenet::LeNet& model,
                                               const penstock::DeviceElement& batch);
