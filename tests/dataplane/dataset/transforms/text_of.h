// SPDX-License-Identifier: Apache-2.0
// Elements as short texts, so that the expected results of a pipeline can be written by hand: "3",
// "[1, 2]", "(0, a)", "{x: 1, y: [2]}"; ragged rows are nested lists.
#pragma once

#include <string>
#include <vector>

#include "dataplane/dataset/engine/node_iterator.h"
#include "penstock/dataset.h"
#include "penstock/element.h"

namespace penstock {

std::string TextOf(const Element& element);

struct ReadOptions {
  uint64_t seed = 1;
  int threads = 2;
  int64_t limit = 1000;    // maximum number of elements
  Files* files = nullptr;  // nullptr: the files of this machine
};

// Returns all elements of `dataset`, with an error as "error: <message>" in its place. A dataset
// that cannot be read gives only this error.
std::vector<std::string> ReadAll(const Dataset& dataset, ReadOptions options = {});

}  // namespace penstock
