// SPDX-License-Identifier: Apache-2.0
// An untrusted tf.train.Example is parsed or refused; a parsed one has the promised dims.
#include <cstddef>
#include <cstdint>
#include <string>

#include "penstock/check.h"
#include "penstock/map.h"
#include "tests/dataplane/dataset/expr/run_function.h"
#include "tests/dataplane/dataset/expr/small_values.h"

namespace penstock {
namespace {

std::shared_ptr<const BoundFunction> Parser() {
  const auto def = Trace(
      [](const Expr& x) {
        return ParseExampleProto(x, {{"b", Dense(kString, {kUnknownDim})},
                                     {"f", Dense(kFloat32, {kUnknownDim, 2})},
                                     {"i", Dense(kInt8, {kUnknownDim})},
                                     {"l", Scalar(kInt64)}});
      },
      Bytes());
  PENSTOCK_CHECK(def.ok());
  return *BoundFunction::Bind(*def);
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto parser = penstock::Parser();
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto results = penstock::RunBound(*parser, {penstock::String(bytes)});
  if (!results.ok()) {
    PENSTOCK_CHECK(results.status().code() == absl::StatusCode::kDataLoss ||
                   results.status().code() == absl::StatusCode::kInvalidArgument);
    return 0;
  }
  const auto leaves = parser->def().output.leaves();
  for (size_t i = 0; i < leaves.size(); ++i)
    PENSTOCK_CHECK(leaves[i].shape.Admits((*results)[i].dims));
  return 0;
}
