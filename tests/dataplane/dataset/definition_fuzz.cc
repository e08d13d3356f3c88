// SPDX-License-Identifier: Apache-2.0
// Untrusted definitions are parsed or refused; a parsed one is written again as an equal one.
// Nothing is read: a pattern might name any file.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/dataset/graph/definition.h"
#include "penstock/check.h"
#include "tests/dataplane/dataset/expr/small_values.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<penstock::Dataset> dataset =
      penstock::ParseDataset({reinterpret_cast<const char*>(data), size});
  if (!dataset.ok()) return 0;
  const absl::StatusOr<std::string> bytes = penstock::Serialize(*dataset);
  PENSTOCK_CHECK(bytes.ok());
  const absl::StatusOr<penstock::Dataset> again = penstock::ParseDataset(*bytes);
  PENSTOCK_CHECK(again.ok());
  PENSTOCK_CHECK(again->fingerprint() == dataset->fingerprint());
  PENSTOCK_CHECK(penstock::Serialize(*again).value() == *bytes);
  PENSTOCK_CHECK(!dataset->Explain().empty());
  return 0;
}
