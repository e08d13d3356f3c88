// SPDX-License-Identifier: Apache-2.0
// Any bytes as .npy and as .npz, by rows and whole.
#include <cstddef>
#include <cstdint>

#include "penstock/sources.h"
#include "tests/dataplane/dataset/sources/read_fuzzed.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using penstock::Dense;
  using penstock::kUnknownDim;
  using penstock::Shape;
  penstock::FakeFiles files;
  files.Put("file", std::string(reinterpret_cast<const char*>(data), size));
  const penstock::Spec specs[] = {
      Dense(penstock::kFloat32, Shape({kUnknownDim, kUnknownDim})),
      Dense(penstock::kBool, Shape({})),
      penstock::Spec::Dict({{"image", Dense(penstock::kUInt8, Shape({kUnknownDim}))},
                            {"label", penstock::Scalar(penstock::kInt64)}}),
      penstock::Spec::Dict({{"x", Dense(penstock::kInt16, Shape({kUnknownDim, 3, kUnknownDim}))}}),
  };
  for (const penstock::Spec& spec : specs)
    for (const bool rows : {false, true})
      penstock::ReadFuzzed(penstock::Dataset::Npy("file", spec, {.rows = rows}), files);
  return 0;
}
