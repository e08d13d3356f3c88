// SPDX-License-Identifier: Apache-2.0
// Shared code of the nodes of registered sources and registered transforms.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/expr/registered.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/registry.h"
#include "include/status_macros.h"
#include "penstock/plugin.h"

namespace penstock {

// Returns the rules of all attributes except the params.
std::vector<AttrRule> RegisteredAttrs();
// Checks these attributes, and infers spec and cardinality from them.
absl::StatusOr<Inferred> InferRegistered(const Attrs& attrs);

// Converts params to attributes of a node, and back.
void AddParams(const Params& params, Attrs& attrs);
Params ParamsOf(const Attrs& attrs);

// The iterator of a registered source or transform, which writes each element into a sink. Errors
// name the node and the registered name.
class RegisteredIterator : public NodeIterator {
 public:
  absl::StatusOr<std::optional<Element>> Next() final;

 protected:
  // `what`: "source".
  RegisteredIterator(const BuildSite& site, std::string_view what);
  absl::Status Explained(const absl::Status& status) const {
    return Annotate(status, "in ", site_.name(), ", ", who_);
  }

  const BuildSite site_;
  const std::string who_;  // "source 'numbers'"
};

// Makes the node of op `op` for the value that `all` has under `name`; `describe` is called with
// that value. An error becomes the status of the dataset.
template <class T, class Describe>
Dataset MakeRegistered(std::string op, const Registered<T>& all, std::string_view name,
                       const Params& params, std::vector<NodePtr> inputs, Describe describe) {
  const auto found = all.Find(std::string(name));
  if (!found.ok()) return DatasetOf(FailedNode(std::move(op), std::move(inputs), found.status()));
  auto info = describe(**found);
  if (!info.ok()) {
    return DatasetOf(
        FailedNode(std::move(op), std::move(inputs),
                   Annotate(info.status(), "in ", all.what(), " '", std::string(name), "'")));
  }
  Attrs attrs = {{"name", std::string(name)},
                 {"version", int64_t{(*found)->version}},
                 {"spec", std::move(info->spec)},
                 {"cardinality", info->cardinality},
                 {"deterministic", (*found)->deterministic}};
  if constexpr (requires { info->splits; }) attrs["splits"] = info->splits;
  AddParams(params, attrs);
  return DatasetOf(MakeNode(std::move(op), std::move(attrs), std::move(inputs)));
}

// Opens the value that `all` has under the site's name and version; `open` is called with that
// value and the params.
template <class T, class Open>
auto OpenRegistered(const Registered<T>& all, const BuildSite& site, Open open)
    -> decltype(open(std::declval<const T&>(), Params())) {
  const std::string& name = site.attr<std::string>("name");
  ASSIGN_OR_RETURN(const auto found, all.Find(name, site.attr<int64_t>("version")));
  auto opened = open(*found, ParamsOf(site.node().attrs));
  if (!opened.ok())
    return Annotate(opened.status(), "in ", site.name(), ", ", all.what(), " '", name, "'");
  return opened;
}

}  // namespace penstock
