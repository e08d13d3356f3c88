// SPDX-License-Identifier: Apache-2.0
// The fast path for images: decode → crop → resize → flip as one step that
// decodes only the crop's region and resizes it into where the result belongs.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/function.h"

namespace penstock {

// Operations, by their place in the function, that follow each other: a
// DecodeJpegImage, then CenterCrop or RandomResizedCrop, then Resize, then
// RandomFlip, each of the last three at most once and at least one of them.
// What one makes, only the next one uses.
using ImageChain = std::vector<size_t>;
std::vector<ImageChain> FindImageChains(const FunctionDef& def);

// Takes the first operation's input and makes the last one's output. The same
// pixels as one by one, within 1/255; with kDct scaling near them.
Kernel MakeImageChain(const FunctionDef& def, const ImageChain& chain);

}  // namespace penstock
