// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/engine/registered_node.h"

#include <type_traits>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/element_sink.h"
#include "dataplane/dataset/expr/output_checks.h"
#include "include/status_macros.h"

namespace penstock {

std::vector<AttrRule> RegisteredAttrs() {
  return {{"name", AttrType::kString},
          {"version", AttrType::kInt},
          {"spec", AttrType::kSpec},
          {"cardinality", AttrType::kInt},
          {"deterministic", AttrType::kBool}};
}

absl::StatusOr<Inferred> InferRegistered(const Attrs& attrs) {
  const Spec& spec = Get<Spec>(attrs, "spec");
  RETURN_IF_ERROR(CheckRegisteredSpec(spec.leaves()));
  const int64_t cardinality = Get<int64_t>(attrs, "cardinality");
  if (cardinality < kUnknown)
    return absl::InvalidArgumentError(
        absl::StrCat("cardinality must be at least -2 (unknown), not ", cardinality));
  return Inferred{spec, cardinality};
}

void AddParams(const Params& params, Attrs& attrs) {
  for (const auto& param : params) {
    Attr& attr = attrs[kParamPrefix + param.first];
    std::visit([&attr](const auto& held) { attr = held; }, param.second);
  }
}

Params ParamsOf(const Attrs& attrs) {
  Params params;
  for (const auto& [name, value] : attrs) {
    if (!absl::StartsWith(name, kParamPrefix)) continue;
    const std::string key = name.substr(sizeof(kParamPrefix) - 1);
    std::visit(
        [&params, &key](const auto& held) {
          if constexpr (std::is_constructible_v<Param, decltype(held)>) params[key] = held;
        },
        value);
  }
  return params;
}

RegisteredIterator::RegisteredIterator(const BuildSite& site, std::string_view what)
    : site_(site),
      who_(absl::StrCat(std::string(what), " '", site.attr<std::string>("name"), "'")) {}

absl::StatusOr<std::optional<Element>> RegisteredIterator::Next() {
  ElementSink sink(site_.pool(), site_.spec());
  ASSIGN_OR_RETURN(const bool more, NextInto(sink));
  if (!more) return std::nullopt;
  return std::move(sink).Finish();
}

}  // namespace penstock
