// SPDX-License-Identifier: Apache-2.0
// Results that a Python process wrote: the first byte chooses the promised specs. Accepted leaves
// make an element that is written and read as itself.
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "dataplane/dataset/engine/element_sink.h"
#include "dataplane/dataset/expr/output_checks.h"
#include "dataplane/memory/pool.h"
#include "dataplane/python/leaves.h"
#include "penstock/check.h"

namespace penstock::python_host {
namespace {

const std::vector<Spec>& Promises() {
  static const auto& promises = *new std::vector<Spec>{
      Spec::Tuple({Dense(kInt32, {kUnknownDim}), Dense(kString, {kUnknownDim}), Scalar(kInt32)}),
      Scalar(kString),
      Dense(kFloat64, {2, kUnknownDim, kUnknownDim}),
      Spec::Tuple({Dense(kString, {kUnknownDim, kUnknownDim}), Dense(kUInt8, {3})}),
      Spec::Tuple({}),
  };
  return promises;
}

std::optional<Element> Read(absl::Span<const uint8_t> memory, const Spec& spec) {
  ElementSink sink(DefaultPool(), spec);
  SinkOutputs out(sink, spec.leaves());
  const absl::Status read = ReadLeaves(
      {reinterpret_cast<const std::byte*>(memory.data()), memory.size()}, spec.leaves(), out);
  if (!read.ok()) return std::nullopt;
  PENSTOCK_CHECK(out.checks().AllGiven("it").ok());
  absl::StatusOr<Element> element = std::move(sink).Finish();
  PENSTOCK_CHECK(element.ok());
  return *std::move(element);
}

std::vector<uint8_t> Written(const Element& element) {
  std::vector<Tensor> leaves;
  for (size_t i = 0; i < element.spec().leaves().size(); ++i) leaves.push_back(element.tensor(i));
  std::vector<uint8_t> memory(BytesOfLeaves(leaves));
  WriteLeaves(leaves, {reinterpret_cast<std::byte*>(memory.data()), memory.size()});
  return memory;
}

}  // namespace
}  // namespace penstock::python_host

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock::python_host;
  if (size == 0) return 0;
  const penstock::Spec& spec = Promises()[data[0] % Promises().size()];
  // Aligned as a segment is, and without spare bytes.
  const std::vector<uint8_t> memory(data + 1, data + size);
  const std::optional<penstock::Element> element = Read(absl::MakeConstSpan(memory), spec);
  if (!element.has_value()) return 0;
  const std::vector<uint8_t> written = Written(*element);
  const std::optional<penstock::Element> again = Read(written, spec);
  PENSTOCK_CHECK(again.has_value());
  PENSTOCK_CHECK(Written(*again) == written);
  return 0;
}
