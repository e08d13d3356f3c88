// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tar file, or as one compressed by gzip if they begin like that.
#include <cstddef>
#include <cstdint>

#include "penstock/sources.h"
#include "tests/dataplane/dataset/sources/read_fuzzed.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  penstock::FakeFiles files;
  files.Put("file", std::string(reinterpret_cast<const char*>(data), size));
  for (const bool skip : {false, true}) {
    penstock::ReadFuzzed(penstock::Dataset::TarShards("file", {"cls", "jpg;png"},
                                                      {.url = true, .skip_incomplete = skip}),
                         files);
  }
  return 0;
}
