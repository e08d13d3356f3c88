// SPDX-License-Identifier: Apache-2.0
// Dataset::BucketBySequenceLength: batches of elements of similar length.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/transforms/batch/batch_spec.h"
#include "dataplane/dataset/transforms/batch/padding.h"
#include "dataplane/dataset/transforms/batch/stack_rows.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/map/scalar_function.h"
#include "dataplane/dataset/transforms/window/keyed_windows.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Ints = std::vector<int64_t>;

// Returns `padding` with its unknown dimensions set to `size`.
RowPadding PaddedTo(RowPadding padding, int64_t size) {
  std::vector<TensorSpec> leaves;
  for (TensorSpec leaf : padding.row.leaves()) {
    Ints dims(leaf.shape.dims().begin(), leaf.shape.dims().end());
    std::replace(dims.begin(), dims.end(), kUnknownDim, size);
    leaf.shape = Shape(std::move(dims));
    leaves.push_back(std::move(leaf));
  }
  padding.row = padding.row.WithLeaves(leaves);
  return padding;
}

// Returns the padding of each bucket; empty for ragged batches.
std::vector<RowPadding> PaddingOfBuckets(const Attrs& attrs) {
  if (Get<bool>(attrs, "no_padding")) return {};
  const RowPadding padding = PaddingOf(attrs);
  const Ints& boundaries = Get<Ints>(attrs, "bucket_boundaries");
  std::vector<RowPadding> all(boundaries.size() + 1, padding);
  if (!Get<bool>(attrs, "pad_to_bucket_boundary")) return all;
  for (size_t i = 0; i < boundaries.size(); ++i) all[i] = PaddedTo(padding, boundaries[i] - 1);
  return all;
}

class BucketIterator final : public KeyedWindows {
 public:
  BucketIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input, IntegerFunction length)
      : KeyedWindows(site, std::move(input)),
        length_(std::move(length)),
        boundaries_(site.attr<Ints>("bucket_boundaries")),
        sizes_(site.attr<Ints>("bucket_batch_sizes")),
        to_boundary_(site.attr<bool>("pad_to_bucket_boundary")),
        padding_(PaddingOfBuckets(site.node().attrs)) {}

 private:
  absl::StatusOr<int64_t> KeyOf(const Element& element, int64_t number) override {
    ASSIGN_OR_RETURN(const int64_t length, length_.Run(element, number));
    if (length < 0 || (to_boundary_ && length >= boundaries_.back())) {
      return absl::InvalidArgumentError(
          absl::StrCat("element_length returned ", length, ", but lengths must be 0 or more",
                       to_boundary_ ? absl::StrCat(" and, padded to the bucket's boundary, below ",
                                                   boundaries_.back(), ", the last boundary")
                                    : "",
                       "; in ", site_.name(), ", element ", number));
    }
    return std::upper_bound(boundaries_.begin(), boundaries_.end(), length) - boundaries_.begin();
  }
  int64_t SizeOf(int64_t key) const override { return sizes_[key]; }
  absl::StatusOr<Element> Put(int64_t key, absl::Span<const Element> elements) override {
    return StackRows(site_.pool(), elements, site_.spec(),
                     padding_.empty() ? nullptr : &padding_[key]);
  }

  const IntegerFunction length_;
  const Ints boundaries_;
  const Ints sizes_;
  const bool to_boundary_;
  const std::vector<RowPadding> padding_;  // per bucket
};

absl::Status CheckBuckets(const Ints& boundaries, const Ints& sizes) {
  if (boundaries.empty())
    return absl::InvalidArgumentError("bucket_boundaries must have at least one boundary");
  for (size_t i = 0; i < boundaries.size(); ++i) {
    if (boundaries[i] > (i == 0 ? 0 : boundaries[i - 1])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("bucket_boundaries must be 1 or more and strictly ascending, but number ", i,
                     " is ", boundaries[i]));
  }
  if (sizes.size() != boundaries.size() + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("bucket_batch_sizes must have one more size "
                     "than there are boundaries, ",
                     boundaries.size() + 1, ", not ", sizes.size()));
  }
  for (int64_t size : sizes) {
    if (size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("bucket_batch_sizes must be at least 1, not ", size));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNoPadding(const Attrs& attrs) {
  if (Get<bool>(attrs, "pad_to_bucket_boundary") || attrs.contains("padded") ||
      attrs.contains("padding_values")) {
    return absl::InvalidArgumentError(
        "no_padding excludes padded_shapes, padding_values and pad_to_bucket_boundary");
  }
  return absl::OkStatus();
}

absl::StatusOr<Spec> BatchSpecOf(const Attrs& attrs, const Spec& element, int64_t rows) {
  if (Get<bool>(attrs, "no_padding")) {
    RETURN_IF_ERROR(CheckNoPadding(attrs));
    return RaggedSpec(element, rows);
  }
  if (!attrs.contains("padded") || !attrs.contains("padding_values"))
    return absl::InvalidArgumentError("padded_shapes and padding_values are missing");
  const RowPadding padding = PaddingOf(attrs);
  RETURN_IF_ERROR(CheckPadding(padding, element));
  return StackedSpec(padding.row, rows);
}

absl::StatusOr<Inferred> InferBucketBatches(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const Ints& sizes = Get<Ints>(attrs, "bucket_batch_sizes");
  RETURN_IF_ERROR(CheckBuckets(Get<Ints>(attrs, "bucket_boundaries"), sizes));
  RETURN_IF_ERROR(CheckWindowAttrs(attrs));
  RETURN_IF_ERROR(
      IntegerFunction::Check(*Get<std::shared_ptr<const FunctionDef>>(attrs, "element_length"),
                             *inputs[0], "element_length"));
  const bool one_size =
      std::count(sizes.begin(), sizes.end(), sizes[0]) == static_cast<int64_t>(sizes.size());
  const int64_t rows = Get<bool>(attrs, "drop_remainder") && one_size ? sizes[0] : kUnknownDim;
  ASSIGN_OR_RETURN(Spec batch, BatchSpecOf(attrs, inputs[0]->spec, rows));
  return Inferred{std::move(batch), inputs[0]->cardinality == 0 ? 0 : kUnknown};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildBucket(const BuildSite& site) {
  ASSIGN_OR_RETURN(IntegerFunction length, IntegerFunction::Create(site, "element_length"));
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<BucketIterator>(site, std::move(input), std::move(length));
}

}  // namespace

NodeKind BucketBySequenceLengthKind() {
  NodeKind kind = {.op = "BucketBySequenceLength",
                   .attrs = {{"element_length", AttrType::kFunction},
                             {"bucket_boundaries", AttrType::kInts},
                             {"bucket_batch_sizes", AttrType::kInts},
                             {"pad_to_bucket_boundary", AttrType::kBool},
                             {"no_padding", AttrType::kBool}},
                   .infer = InferBucketBatches,
                   .build = BuildBucket,
                   .explain_details = RestoresFrom};
  for (const AttrRule& rule : WindowRules()) kind.attrs.push_back(rule);
  for (const AttrRule& rule : PaddingRules(false)) kind.attrs.push_back(rule);
  return kind;
}

Dataset Dataset::BucketBySequenceLength(MapFunction element_length, Ints bucket_boundaries,
                                        Ints bucket_batch_sizes,
                                        BucketBySequenceLengthOptions options) const {
  constexpr char kOp[] = "BucketBySequenceLength";
  if (!status().ok()) return *this;
  absl::StatusOr<std::shared_ptr<const FunctionDef>> length = Trace(element_length, element_spec());
  if (!length.ok()) return DatasetOf(FailedNode(kOp, {node_}, length.status()));
  Attrs attrs = WindowAttrs(options.drop_remainder, options.max_age);
  attrs["element_length"] = *std::move(length);
  attrs["bucket_boundaries"] = std::move(bucket_boundaries);
  attrs["bucket_batch_sizes"] = std::move(bucket_batch_sizes);
  attrs["pad_to_bucket_boundary"] = options.pad_to_bucket_boundary;
  attrs["no_padding"] = options.no_padding;
  if (!options.no_padding || !options.padded_shapes.empty() || !options.padding_values.empty()) {
    absl::StatusOr<RowPadding> padding =
        MakePadding(options.padded_shapes, options.padding_values, element_spec());
    if (!padding.ok()) return DatasetOf(FailedNode(kOp, {node_}, padding.status()));
    AddPadding(*padding, attrs);
  }
  return DatasetOf(MakeNode(kOp, std::move(attrs), {node_}));
}

}  // namespace penstock
