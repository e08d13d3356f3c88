// SPDX-License-Identifier: Apache-2.0
// Elements made of given tensors: FromTensors and FromTensorSlices, and, inside a DatasetFunction,
// TensorsOf and TensorSlicesOf.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/row_view.h"
#include "dataplane/dataset/sources/indexed_source.h"
#include "dataplane/dataset/sources/kinds.h"
#include "dataplane/memory/pool.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

std::string LeafText(const Spec& spec, size_t i) {
  const std::string name = spec.LeafName(i);
  return name.empty() ? "the tensor" : absl::StrCat("tensor ", name);
}

std::vector<Tensor> TensorsOfElement(const Element& element) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < element.size(); ++i) tensors.push_back(element.tensor(i));
  return tensors;
}

// Checks that the tensors match the spec.
absl::Status CheckTensors(absl::Span<const Tensor> tensors, const Spec& spec) {
  if (tensors.size() != spec.leaves().size()) {
    return absl::InvalidArgumentError(absl::StrCat(tensors.size(), " tensors were given for the ",
                                                   spec.leaves().size(), " leaves of ",
                                                   spec.ToString()));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorSpec& leaf = spec.leaves()[i];
    if (!tensors[i].present() && leaf.optional) continue;
    const TensorSpec given{.dtype = tensors[i].dtype(),
                           .shape = Shape({tensors[i].dims().begin(), tensors[i].dims().end()}),
                           .kind = tensors[i].kind(),
                           .ragged_rank = tensors[i].ragged_rank()};
    // The dims of ragged and sparse values differ from those of the leaf.
    const bool fits =
        given.dtype == leaf.dtype && given.kind == leaf.kind &&
        given.ragged_rank == leaf.ragged_rank &&
        (leaf.kind != TensorSpec::Kind::kDense || leaf.shape.Admits(tensors[i].dims()));
    if (!fits) {
      return absl::InvalidArgumentError(
          absl::StrCat(LeafText(spec, i), " is ", given.ToString(), ", not ", leaf.ToString()));
    }
  }
  return absl::OkStatus();
}

// Returns the spec of one row of tensors of `spec`.
absl::StatusOr<Spec> RowSpec(const Spec& spec) {
  if (spec.leaves().empty())
    return absl::InvalidArgumentError("there must be at least one tensor to take rows from");
  std::vector<TensorSpec> rows;
  for (size_t i = 0; i < spec.leaves().size(); ++i) {
    const TensorSpec& leaf = spec.leaves()[i];
    if (leaf.kind != TensorSpec::Kind::kDense || leaf.optional || !leaf.shape.has_rank() ||
        leaf.shape.rank() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(LeafText(spec, i), " is ", leaf.ToString(),
                       ", from which no rows can be taken: it must be a dense tensor of known "
                       "rank ≥ 1"));
    }
    const absl::Span<const int64_t> dims = leaf.shape.dims().subspan(1);
    rows.push_back(Dense(leaf.dtype, Shape(std::vector<int64_t>(dims.begin(), dims.end()))));
  }
  return spec.WithLeaves(rows);
}

// Returns the number of rows, which all tensors must share.
absl::StatusOr<int64_t> RowCountOfAll(absl::Span<const Tensor> tensors, const Spec& spec) {
  const int64_t count = tensors[0].dim(0);
  for (size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i].dim(0) != count) {
      return absl::InvalidArgumentError(absl::StrCat(LeafText(spec, i), " has ", tensors[i].dim(0),
                                                     " rows, but ", LeafText(spec, 0), " has ",
                                                     count));
    }
  }
  return count;
}

// Returns the tensors once. They live in the node or in the site's argument.
class TensorsIterator final : public IndexedSource {
 public:
  TensorsIterator(const BuildSite& site, std::vector<Tensor> tensors)
      : IndexedSource(site, 1, 1), tensors_(std::move(tensors)) {}

 private:
  absl::StatusOr<Element> Make(int64_t) override {
    return MakeElement(site().pool(), tensors_, site().spec());
  }

  std::vector<Tensor> tensors_;
};

class SlicesIterator final : public IndexedSource {
 public:
  SlicesIterator(const BuildSite& site, std::vector<Tensor> tensors, int64_t count)
      : IndexedSource(site, count, SplitCountFor(count)),
        tensors_(std::move(tensors)),
        row_(tensors_.size()) {}

 private:
  absl::StatusOr<Element> Make(int64_t n) override {
    for (size_t i = 0; i < tensors_.size(); ++i) row_[i] = RowOf(tensors_[i], n);
    return MakeElement(site().pool(), row_, site().spec());
  }

  std::vector<Tensor> tensors_;
  std::vector<Tensor> row_;
};

absl::StatusOr<Inferred> InferTensors(const Attrs& attrs, absl::Span<const NodePtr>) {
  const Element& value = *Get<ConstantElement>(attrs, "value");
  RETURN_IF_ERROR(CheckTensors(TensorsOfElement(value), value.spec()));
  return Inferred{value.spec(), 1};
}

absl::StatusOr<Inferred> InferSlices(const Attrs& attrs, absl::Span<const NodePtr>) {
  const Element& value = *Get<ConstantElement>(attrs, "value");
  const std::vector<Tensor> tensors = TensorsOfElement(value);
  RETURN_IF_ERROR(CheckTensors(tensors, value.spec()));
  ASSIGN_OR_RETURN(Spec row, RowSpec(value.spec()));
  ASSIGN_OR_RETURN(const int64_t count, RowCountOfAll(tensors, value.spec()));
  return Inferred{std::move(row), count};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildTensors(const BuildSite& site) {
  return std::make_unique<TensorsIterator>(site,
                                           TensorsOfElement(*site.attr<ConstantElement>("value")));
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildSlices(const BuildSite& site) {
  return std::make_unique<SlicesIterator>(
      site, TensorsOfElement(*site.attr<ConstantElement>("value")), site.node().cardinality);
}

absl::StatusOr<SplitProviderPlan> PlanTensors(const Dataset::Node& node, Files&) {
  return SplitProviderPlan{.count = SplitCountFor(node.cardinality)};
}

absl::StatusOr<Inferred> InferTensorsOf(const Attrs& attrs, absl::Span<const NodePtr>) {
  return Inferred{Get<Spec>(attrs, "argument"), 1};
}

absl::StatusOr<Inferred> InferSlicesOf(const Attrs& attrs, absl::Span<const NodePtr>) {
  const Spec& argument = Get<Spec>(attrs, "argument");
  ASSIGN_OR_RETURN(Spec row, RowSpec(argument));
  const int64_t rows = argument.leaves()[0].shape.dim(0);
  return Inferred{std::move(row), rows == kUnknownDim ? kUnknown : rows};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildTensorsOf(const BuildSite& site) {
  return std::make_unique<TensorsIterator>(site, site.argument());
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildSlicesOf(const BuildSite& site) {
  std::vector<Tensor> tensors = site.argument();
  absl::StatusOr<int64_t> count = RowCountOfAll(tensors, site.spec());
  if (!count.ok()) {
    return absl::Status(count.status().code(),
                        absl::StrCat(site.name(), ": ", count.status().message()));
  }
  return std::make_unique<SlicesIterator>(site, std::move(tensors), *count);
}

// Makes a node of operation `op` with a copy of the tensors.
Dataset OfConstant(const char* op, const std::vector<Tensor>& leaves, const Spec& spec) {
  if (absl::Status fits = CheckTensors(leaves, spec); !fits.ok())
    return DatasetOf(FailedNode(op, {}, fits));
  absl::StatusOr<Element> copy = MakeElement(DefaultPool(), leaves, spec);
  if (!copy.ok()) return DatasetOf(FailedNode(op, {}, copy.status()));
  ConstantElement value = std::make_shared<const Element>(*std::move(copy));
  return DatasetOf(MakeNode(op, {{"value", std::move(value)}}, {}));
}

NodeKind Source(std::string op) {
  return {.op = std::move(op), .min_inputs = 0, .max_inputs = 0};
}

}  // namespace

NodeKind FromTensorsKind() {
  NodeKind kind = Source("FromTensors");
  kind.attrs = {{"value", AttrType::kElement}};
  kind.infer = InferTensors;
  kind.build = BuildTensors;
  kind.plan = PlanTensors;
  return kind;
}

NodeKind FromTensorSlicesKind() {
  NodeKind kind = Source("FromTensorSlices");
  kind.attrs = {{"value", AttrType::kElement}};
  kind.infer = InferSlices;
  kind.build = BuildSlices;
  kind.plan = PlanTensors;
  return kind;
}

NodeKind TensorsOfKind() {
  NodeKind kind = Source("TensorsOf");
  kind.attrs = {{"argument", AttrType::kSpec}};
  kind.takes_argument = true;
  kind.infer = InferTensorsOf;
  kind.build = BuildTensorsOf;
  return kind;
}

NodeKind TensorSlicesOfKind() {
  NodeKind kind = Source("TensorSlicesOf");
  kind.attrs = {{"argument", AttrType::kSpec}};
  kind.takes_argument = true;
  kind.infer = InferSlicesOf;
  kind.build = BuildSlicesOf;
  return kind;
}

Dataset Dataset::FromTensors(const std::vector<Tensor>& leaves, const Spec& spec) {
  return OfConstant("FromTensors", leaves, spec);
}

Dataset Dataset::FromTensorSlices(const std::vector<Tensor>& leaves, const Spec& spec) {
  return OfConstant("FromTensorSlices", leaves, spec);
}

Dataset Dataset::FromStrings(const std::vector<std::string_view>& values, bool slices) {
  std::vector<uint64_t> offsets = {0};
  std::string bytes;
  for (std::string_view value : values) {
    bytes.append(value);
    offsets.push_back(bytes.size());
  }
  const int64_t dims[] = {static_cast<int64_t>(values.size())};
  if (!slices) return FromTensors({Tensor(kString, {}, offsets.data(), bytes.data())}, Bytes());
  return FromTensorSlices({Tensor(kString, dims, offsets.data(), bytes.data())},
                          Dense(kString, Shape({dims[0]})));
}

Dataset Dataset::FromTensors(const Expr& element) {
  return DatasetOf(MakeNode("TensorsOf", {{"argument", element.spec()}}, {}, {element}));
}

Dataset Dataset::FromTensorSlices(const Expr& element) {
  return DatasetOf(MakeNode("TensorSlicesOf", {{"argument", element.spec()}}, {}, {element}));
}

}  // namespace penstock
