// SPDX-License-Identifier: Apache-2.0
// Any bytes as files of tokens. The first five bytes set how they are cut into windows.
#include <cstddef>
#include <cstdint>

#include "penstock/sources.h"
#include "tests/dataplane/dataset/sources/read_fuzzed.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kOptions = 5;
  if (size < kOptions) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + kOptions, size - kOptions);
  penstock::FakeFiles files;
  files.Put("file.bin", bytes);
  files.Put("file.npy", bytes);
  const penstock::DType dtypes[] = {penstock::kUInt16, penstock::kInt32, penstock::kInt64};
  const penstock::TokenShardsOptions options = {.dtype = dtypes[data[0] % 3],
                                                .stride = 1 + data[1],
                                                .with_next_token = data[2] % 2 == 1,
                                                .drop_remainder = data[2] / 2 % 2 == 1,
                                                .header_bytes = data[3]};
  for (const char* name : {"file.bin", "file.npy"})
    penstock::ReadFuzzed(penstock::Dataset::TokenShards(name, 1 + data[4], options), files);
  return 0;
}
