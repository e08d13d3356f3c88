// SPDX-License-Identifier: Apache-2.0
// Inputs for tests of sources: files of data/, and datasets over given files.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "control/env/files.h"
#include "tests/dataplane/dataset/transforms/text_of.h"

namespace penstock {

// Returns the bytes of a file in data/.
inline std::string DataFile(const std::string& name) {
  std::ifstream in(TEST_DATA "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<std::string> Read(const Dataset& dataset, Files& files) {
  return ReadAll(dataset, {.files = &files});
}

}  // namespace penstock
