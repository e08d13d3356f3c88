// SPDX-License-Identifier: Apache-2.0
// Converts the parts of a definition to and from the messages of control/proto/dataset.proto.
// Messages are untrusted and are checked: InvalidArgument names the fault.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "dataplane/dataset/expr/attr.h"
#include "penstock/element.h"
#include "penstock/spec.h"

namespace penstock {

namespace dataset::wire {
class Attr;
class Element;
class Function;
class Spec;
class TensorSpec;
}  // namespace dataset::wire

void ToProto(const TensorSpec& from, dataset::wire::TensorSpec& to);
absl::StatusOr<TensorSpec> FromProto(const dataset::wire::TensorSpec& from);

void ToProto(const Spec& from, dataset::wire::Spec& to);
absl::StatusOr<Spec> FromProto(const dataset::wire::Spec& from);

// Values are copied.
void ToProto(const Element& from, dataset::wire::Element& to);
absl::StatusOr<Element> FromProto(const dataset::wire::Element& from);

void ToProto(const FunctionDef& from, dataset::wire::Function& to);
absl::StatusOr<std::shared_ptr<const FunctionDef>> FromProto(const dataset::wire::Function& from);

void ToProto(const std::string& name, const Attr& from, dataset::wire::Attr& to);
absl::StatusOr<Attr> FromProto(const dataset::wire::Attr& from);
// Reads the attributes of one node or operation. REQUIRES: Range is a repeated field of Attr.
template <class Range>
absl::StatusOr<Attrs> AttrsFromProto(const Range& from) {
  Attrs attrs;
  for (const auto& attr : from) {
    absl::StatusOr<Attr> value = FromProto(attr);
    if (!value.ok()) return value.status();
    if (!attrs.emplace(attr.name(), *std::move(value)).second)
      return absl::InvalidArgumentError("the attribute " + absl::CHexEscape(attr.name()) +
                                        " appears twice");
  }
  return attrs;
}

}  // namespace penstock
