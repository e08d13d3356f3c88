// SPDX-License-Identifier: Apache-2.0
// FromPythonGenerator(): the elements of a Python generator, as one split. A position is a count of
// elements. To restore it, the generator is started again and this many elements are skipped.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/expr/output_checks.h"
#include "dataplane/dataset/expr/python_host.h"
#include "dataplane/dataset/sources/kinds.h"
#include "dataplane/dataset/sources/registered_source.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr char kOp[] = "FromGenerator";

absl::StatusOr<Inferred> InferGenerator(const Attrs& attrs, absl::Span<const NodePtr>) {
  const int64_t splits = Get<int64_t>(attrs, "splits");
  if (splits != 1)
    return absl::InvalidArgumentError(absl::StrCat("a generator has one split, not ", splits));
  const Spec& spec = Get<Spec>(attrs, "spec");
  RETURN_IF_ERROR(CheckRegisteredSpec(spec.leaves()));
  return Inferred{spec, kUnknown};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildGenerator(const BuildSite& site) {
  auto generator = std::make_shared<const PythonFunction>(PythonFunctionOf(site.node().attrs));
  auto reader = site.python()->Open(generator, site.spec());
  RETURN_IF_ERROR(Annotate(reader.status(), site.name(), ": generator '", generator->name, "'"));
  return ReadSplits(site, "generator", *std::move(reader));
}

absl::StatusOr<SplitProviderPlan> PlanGenerator(const Dataset::Node&, Files&) {
  return SplitProviderPlan{.count = 1};
}

}  // namespace

NodeKind PythonGeneratorKind() {
  return {.op = kOp,
          .attrs = {{"name", AttrType::kString},
                    {"pickle", AttrType::kString},
                    {"version", AttrType::kString},
                    {"call", AttrType::kString},
                    {"spec", AttrType::kSpec},
                    {"deterministic", AttrType::kBool},
                    {"splits", AttrType::kInt}},
          .min_inputs = 0,
          .max_inputs = 0,
          .infer = InferGenerator,
          .build = BuildGenerator,
          .plan = PlanGenerator,
          .explain_details = [](const Dataset::Node& node) {
            return absl::StrCat("one split: ", WayOf(PythonFunctionOf(node.attrs)),
                                "; restores a position by skipping the elements before it");
          }};
}

Dataset FromPythonGenerator(PythonFunction generator, const Spec& spec, bool deterministic) {
  Attrs attrs = {{"spec", spec}, {"deterministic", deterministic}, {"splits", int64_t{1}}};
  AddTo(attrs, std::move(generator));
  return DatasetOf(MakeNode(kOp, std::move(attrs), {}));
}

}  // namespace penstock
