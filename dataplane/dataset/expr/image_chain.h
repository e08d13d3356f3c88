// SPDX-License-Identifier: Apache-2.0
// The fast path for images: decode → crop → resize → flips → normalise as one
// step that decodes only the crop's region and writes what comes of it where
// the result belongs.
#pragma once

#include <cstddef>
#include <vector>

#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/function.h"

namespace penstock {

// Operations, by their place in the function, that follow each other: one that
// decodes, then a crop, then Resize, then flips, then Normalize; the flips any
// number of times, the others once at most, and at least one behind the first.
// What one makes, only the next one uses.
using ImageChain = std::vector<size_t>;
std::vector<ImageChain> FindImageChains(const FunctionDef& def);

// Takes the first operation's input and makes the last one's output. The same
// pixels as one by one, within 1/255; with kDct scaling near them.
Kernel MakeImageChain(const FunctionDef& def, const ImageChain& chain);

}  // namespace penstock
