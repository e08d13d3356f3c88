// SPDX-License-Identifier: Apache-2.0
// Elements as short texts, so that what a pipeline must give can be written by
// hand: "3", "[1, 2]", "(0, a)", "{x: 1, y: [2]}"; ragged rows as nested lists.
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
  int64_t limit = 1000;    // elements at most
  Files* files = nullptr;  // nullptr: this machine's
};

// All elements of `dataset`, an error as "error: <message>" in its place; a
// dataset that cannot be read as this one error.
std::vector<std::string> ReadAll(const Dataset& dataset, ReadOptions options = {});

}  // namespace penstock
