// SPDX-License-Identifier: Apache-2.0
// C++ functions of your own, for use in a map. They are registered by name in every program that
// runs them.
//
//   absl::Status Halve(ps::CallContext& call) { … }
//   PENSTOCK_REGISTER_MAP("halve", 1, ps::Scalar(ps::kInt64), Halve);
//   dataset.Map([](auto x) { return ps::Call("halve", x); })
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

#pragma GCC visibility push(default)
namespace penstock {

// Takes the leaves of one element, in the order of its spec. Valid during one call only.
class ElementOutputs {
 public:
  virtual ~ElementOutputs() = default;
  // Returns memory for leaf `i` with these dims, to be written before the call returns. It may
  // already be inside the batch's block. String leaves have OutputStrings() instead.
  virtual absl::StatusOr<absl::Span<std::byte>> Output(size_t i,
                                                       absl::Span<const int64_t> dims) = 0;
  virtual absl::Status OutputStrings(size_t i, absl::Span<const int64_t> dims,
                                     absl::Span<const std::string> values) = 0;

  template <class T>
  absl::StatusOr<absl::Span<T>> OutputAs(size_t i, absl::Span<const int64_t> dims) {
    auto bytes = Output(i, dims);
    if (!bytes.ok()) return bytes.status();
    return absl::MakeSpan(reinterpret_cast<T*>(bytes->data()), bytes->size() / sizeof(T));
  }
};

// One call of a registered function. Valid during the call only.
class CallContext : public ElementOutputs {
 public:
  virtual absl::Span<const Tensor> inputs() const = 0;
  // Returns 64 random bits that depend on the dataset's seed, the element and `draw`.
  virtual uint64_t Random(uint32_t draw) const = 0;
};

struct RegisteredMap {
  int version = 1;  // enters the fingerprint; raise it when results change
  std::function<absl::StatusOr<Spec>(const Spec& input)> output_spec;
  std::function<absl::Status(CallContext&)> call;  // any thread, several at once
  // False if equal inputs and equal random bits may give different results, for example because the
  // function reads a clock or calls a service. Such a function is refused if a later node makes
  // decisions based on values.
  bool deterministic = true;
};

// AlreadyExists if a different version is registered under the name.
absl::Status RegisterMap(std::string name, RegisteredMap map);
std::vector<std::string> RegisteredMaps();

}  // namespace penstock
#pragma GCC visibility pop

// Registers `fn` (absl::Status(CallContext&)) when the program starts. Its output has `spec` for
// every input.
#define PENSTOCK_REGISTER_MAP(name, version_number, spec, fn) \
  PENSTOCK_REGISTER_MAP_INNER(__COUNTER__, name, version_number, spec, fn)
#define PENSTOCK_REGISTER_MAP_INNER(unique, name, version_number, spec, fn) \
  PENSTOCK_REGISTER_MAP_INNERMOST(unique, name, version_number, spec, fn)
#define PENSTOCK_REGISTER_MAP_INNERMOST(unique, name, version_number, spec, fn)               \
  [[maybe_unused]] static const bool penstock_registered_##unique =                           \
      ::penstock::RegisterMap(                                                                \
          name,                                                                               \
          {.version = version_number,                                                         \
           .output_spec = [](const ::penstock::Spec&) -> ::absl::StatusOr<::penstock::Spec> { \
             return ::penstock::Spec(spec);                                                   \
           },                                                                                 \
           .call = fn})                                                                       \
          .ok()
