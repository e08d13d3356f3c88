// SPDX-License-Identifier: Apache-2.0
// Reductions of tensors over all replicas.
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/batch/join_rows.h"
#include "dataplane/element/block.h"
#include "dataplane/memory/pool.h"
#include "include/status_macros.h"
#include "penstock/distributed_dataset.h"

namespace penstock {
namespace {

// The tensors to reduce: one leaf, of all replicas.
struct Parts {
  std::vector<Tensor> tensors;
  std::vector<absl::Span<const float>> weights;  // weights of rows; {}: all are 1
  ReduceOp op = ReduceOp::kSum;
  bool rows = false;  // also reduces over the rows of all replicas
};

// Returns the dims of the result. InvalidArgument if the tensors do not match.
absl::StatusOr<std::vector<int64_t>> ResultDims(const Parts& parts) {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < parts.tensors.size(); ++i) {
    const Tensor& tensor = parts.tensors[i];
    if (tensor.kind() != TensorSpec::Kind::kDense || !tensor.present())
      return absl::InvalidArgumentError("the value is not dense");
    if (parts.rows && tensor.rank() == 0)
      return absl::InvalidArgumentError("the value has no axis 0");
    const absl::Span<const int64_t> own = tensor.dims().subspan(parts.rows ? 1 : 0);
    if (i == 0)
      dims.assign(own.begin(), own.end());
    else if (absl::MakeConstSpan(dims) != own)
      return absl::InvalidArgumentError(absl::StrCat(
          "the value has different shapes on replicas 0 and ", i,
          parts.rows ? "" : "; with axis 0 only the shapes of its rows must be equal"));
    const size_t weights = parts.weights[i].size();
    if (parts.rows && weights > 0 && static_cast<int64_t>(weights) != tensor.dim(0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the value has ", tensor.dim(0), " rows on replica ", i, ", whose values have ", weights,
          " weights; reduce it before rows are combined or cut"));
    }
  }
  return dims;
}

// Computes the sum in type `Wide`, and writes it as type T.
template <class T, class Wide>
absl::Status AddUp(const Parts& parts, absl::Span<std::byte> to) {
  auto* const result = reinterpret_cast<T*>(to.data());
  const size_t count = to.size() / sizeof(T);
  std::vector<Wide> sums(count);
  double weighed = 0;
  for (size_t i = 0; i < parts.tensors.size(); ++i) {
    const absl::Span<const T> values = parts.tensors[i].data<T>();
    const int64_t rows = parts.rows ? parts.tensors[i].dim(0) : 1;
    for (int64_t row = 0; row < rows; ++row) {
      const float weight = parts.rows && !parts.weights[i].empty() ? parts.weights[i][row] : 1;
      weighed += weight;
      for (size_t v = 0; v < count; ++v)
        sums[v] += static_cast<Wide>(values[row * count + v]) * static_cast<Wide>(weight);
    }
  }
  for (size_t v = 0; v < count; ++v) {
    const Wide sum = parts.op == ReduceOp::kSum
                         ? sums[v]
                         : static_cast<Wide>(static_cast<double>(sums[v]) / weighed);
    result[v] = static_cast<T>(sum);
  }
  return absl::OkStatus();
}

absl::Status AddUp(DType dtype, const Parts& parts, absl::Span<std::byte> to) {
  if (parts.op == ReduceOp::kMean && !IsFloating(dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the dtype is ", Name(dtype), ", but a mean needs floating-point numbers; Cast it first"));
  }
  switch (dtype) {
    case kInt8:
      return AddUp<int8_t, int64_t>(parts, to);
    case kInt16:
      return AddUp<int16_t, int64_t>(parts, to);
    case kInt32:
      return AddUp<int32_t, int64_t>(parts, to);
    case kInt64:
      return AddUp<int64_t, int64_t>(parts, to);
    case kUInt8:
      return AddUp<uint8_t, uint64_t>(parts, to);
    case kUInt16:
      return AddUp<uint16_t, uint64_t>(parts, to);
    case kUInt32:
      return AddUp<uint32_t, uint64_t>(parts, to);
    case kUInt64:
      return AddUp<uint64_t, uint64_t>(parts, to);
    case kFloat16:
      return AddUp<Float16, float>(parts, to);
    case kBFloat16:
      return AddUp<BFloat16, float>(parts, to);
    case kFloat32:
      return AddUp<float, double>(parts, to);
    case kFloat64:
      return AddUp<double, double>(parts, to);
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("the dtype is ", Name(dtype),
                       "; only integers and floating-point numbers can be reduced"));
  }
}

// Writes a replica's element for other processes: its block, and the bytes of its weights.
void WriteElements(const DistributedValues& values, size_t replica, StateWriter& writer) {
  const absl::Span<const std::byte> block = values[replica].block();
  const absl::Span<const float> weights = values.weights(replica);
  writer.WriteString({reinterpret_cast<const char*>(block.data()), block.size()});
  writer.WriteString(
      {reinterpret_cast<const char*>(weights.data()), weights.size() * sizeof(float)});
}

// Appends an element that WriteElements() wrote. InvalidArgument if the element does not match
// `spec`, the spec of this process's values.
absl::Status ReadElements(StateReader& reader, const Spec& spec, std::vector<Element>& elements,
                          std::vector<std::vector<float>>& weights) {
  ASSIGN_OR_RETURN(const std::string_view block, reader.ReadString());
  ASSIGN_OR_RETURN(Loan loan, DefaultPool().Lend(block.size()));
  std::memcpy(loan.bytes().data(), block.data(), block.size());
  const absl::Status fits = CheckBlock(loan.bytes().first(block.size()), spec).status();
  if (!fits.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the element does not fit the spec of this process's values, ",
                     spec.ToString(), ": ", fits.message()));
  }
  std::byte* const at = loan.bytes().data();
  elements.emplace_back(std::move(loan), at, spec);
  ASSIGN_OR_RETURN(const std::string_view bytes, reader.ReadString());
  std::vector<float>& own = weights.emplace_back(bytes.size() / sizeof(float));
  if (!own.empty()) std::memcpy(own.data(), bytes.data(), own.size() * sizeof(float));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DistributedValues> ReplicaGroup::OfAllReplicas(
    std::string_view what, const DistributedValues& local) const {
  RETURN_IF_ERROR(CheckLocal(local.size()));
  RETURN_IF_ERROR(local.CheckOnDevice(false, what));
  StateWriter writer;
  for (size_t i = 0; num_processes() > 1 && i < local.size(); ++i) WriteElements(local, i, writer);
  ASSIGN_OR_RETURN(const std::vector<std::string> all, Exchange(what, writer.bytes()));
  std::vector<Element> elements;
  std::vector<std::vector<float>> weights;
  for (int n = 0; n < num_processes(); ++n) {
    StateReader reader(all[static_cast<size_t>(n)]);
    for (int i = 0; i < options_.replicas_of_process[n]; ++i) {
      if (n == process()) {
        const auto replica = static_cast<size_t>(i);
        elements.push_back(local[replica].Share());
        weights.emplace_back(local.weights(replica).begin(), local.weights(replica).end());
        continue;
      }
      RETURN_IF_ERROR(Annotate(ReadElements(reader, local[0].spec(), elements, weights), "in ",
                               std::string(what), ", replica ", elements.size()));
    }
  }
  return DistributedValues(std::move(elements), std::move(weights));
}

absl::StatusOr<Element> ReplicaGroup::Reduce(ReduceOp op, const DistributedValues& local,
                                             std::optional<int> axis) const {
  ASSIGN_OR_RETURN(const DistributedValues values, OfAllReplicas("Reduce", local));
  if (axis.has_value() && *axis != 0) {
    return absl::InvalidArgumentError(absl::StrCat("axis must be 0 or not given, not ", *axis));
  }
  const Spec& spec = values[0].spec();
  std::vector<Parts> leaves;
  std::vector<TensorSpec> specs;
  std::vector<LeafLayout> layouts;
  for (size_t leaf = 0; leaf < spec.leaves().size(); ++leaf) {
    Parts& parts = leaves.emplace_back();
    parts.op = op;
    parts.rows = axis.has_value();
    for (size_t i = 0; i < values.size(); ++i) {
      parts.tensors.push_back(values[i].tensor(leaf));
      parts.weights.push_back(values.weights(i));
    }
    const absl::StatusOr<std::vector<int64_t>> dims = ResultDims(parts);
    RETURN_IF_ERROR(Annotate(dims.status(), "component ", spec.LeafName(leaf), " in Reduce"));
    const DType dtype = parts.tensors[0].dtype();
    specs.push_back(Dense(dtype, Shape(*dims)));
    layouts.push_back({.dtype = dtype, .dims = {dims->begin(), dims->end()}});
  }
  ASSIGN_OR_RETURN(const BlockLayout layout, BlockLayout::Of(layouts));
  const Spec reduced = spec.WithLeaves(specs);
  ASSIGN_OR_RETURN(OpenBlock block, NewBlock(DefaultPool(), layout, reduced));
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    RETURN_IF_ERROR(Annotate(AddUp(specs[leaf].dtype, leaves[leaf], block.writer.data(leaf)),
                             "component ", spec.LeafName(leaf), " in Reduce"));
  }
  return std::move(block).Seal(reduced);
}

absl::StatusOr<Element> ReplicaGroup::Gather(const DistributedValues& local) const {
  ASSIGN_OR_RETURN(const DistributedValues values, OfAllReplicas("Gather", local));
  PerReplicaSpec spec = values.spec();
  Spec all = spec[0];
  std::vector<TensorSpec> leaves(all.leaves().begin(), all.leaves().end());
  for (TensorSpec& leaf : leaves)
    if (leaf.shape.has_rank() && leaf.shape.rank() > 0) {
      std::vector<int64_t> dims(leaf.shape.dims().begin(), leaf.shape.dims().end());
      dims[0] = kUnknownDim;
      leaf.shape = Shape(std::move(dims));
    }
  all = all.WithLeaves(leaves);
  std::vector<RowRange> ranges;
  for (size_t i = 0; i < values.size(); ++i) {
    absl::StatusOr<BatchRows> rows = BatchRows::Of(values[i].Share());
    RETURN_IF_ERROR(Annotate(rows.status(), "in Gather, replica ", i));
    if (const int64_t count = rows->count(); count > 0)
      ranges.push_back({std::make_shared<BatchRows>(*std::move(rows)), 0, count});
  }
  if (ranges.empty()) return NoRows(DefaultPool(), all);
  return JoinRows(DefaultPool(), ranges, all);
}

}  // namespace penstock
