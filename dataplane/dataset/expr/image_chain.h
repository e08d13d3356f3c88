// SPDX-License-Identifier: Apache-2.0
// The fast path for images: decode → crop → resize → flips → normalise as one step, which decodes
// only the crop's region and writes the result into its final place.
#pragma once

#include <cstddef>
#include <vector>

#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/expr/op_registry.h"

namespace penstock {

// Consecutive operations, by their place in the function: one that decodes, then a crop, then
// Resize, then flips, then Normalize. At least one follows the decoder. Flips may repeat; each
// other operation appears at most once. Only the next operation uses the output of each.
using ImageChain = std::vector<size_t>;
std::vector<ImageChain> FindImageChains(const FunctionDef& def);

// The kernel takes the first operation's input and makes the last one's output. Its pixels differ
// by at most 1/255 from those of the single operations; with kDct scaling they are only
// approximately equal.
Kernel MakeImageChain(const FunctionDef& def, const ImageChain& chain);

}  // namespace penstock
