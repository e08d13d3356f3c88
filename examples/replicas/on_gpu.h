// SPDX-License-Identifier: Apache-2.0
// Learning on a GPU: on_gpu.cc where the example is built with CUDA, else no_gpu.cc.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "lenet.h"
#include "penstock/device_element.h"

// Returns the sums of one replica in a step, like LearnHere() in main.cc: the gradient of
// LeNet::kWeights, then the loss and the number of rows. `batch` has images and labels and is on a
// GPU; the call waits for it there. Any thread, one at a time for each GPU.
absl::StatusOr<std::vector<double>> LearnOnGpu(const lenet::LeNet& model,
                                               const penstock::DeviceElement& batch);
