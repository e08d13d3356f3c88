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
// other operation appears at most once. The output of each operation is used only by the next
// operation.
using ImageChain = std::vector<size_t>;
std::vector<ImageChain> FindImageChains(const FunctionDef& def);

// The kernel takes the first operation's input and makes the last operation's output. The output's
// pixels differ by at most 1/255 from the pixels that the operations make one by one; with kDct
// scaling they are only approximately equal.
Kernel MakeImageChain(const FunctionDef& def, const ImageChain& chain);

}  // namespace penstock
