// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/proto/dataset.pb.h"
#include "dataplane/dataset/graph/attr_proto.h"
#include "dataplane/element/block.h"
#include "dataplane/memory/pool.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

void AddPart(absl::Span<const int64_t> from, dataset::wire::Tensor& to) {
  dataset::wire::Part& part = *to.add_parts();
  for (int64_t value : from) part.add_values(value);
}

void TensorToProto(const penstock::Tensor& from, dataset::wire::Tensor& to) {
  to.set_left_out(!from.present());
  if (!from.present()) return;
  for (int64_t dim : from.dims()) to.add_dims(dim);
  if (from.dtype() == kString) {
    for (int64_t i = 0; i < from.element_count(); ++i) {
      const std::string_view value = from.string(i);
      to.add_lengths(value.size());
      to.mutable_values()->append(value);
    }
  } else {
    to.set_values(from.raw(), from.byte_count());
  }
  for (int level = 0; level < from.ragged_rank(); ++level) AddPart(from.row_splits(level), to);
  if (from.kind() == TensorSpec::Kind::kSparse) {
    AddPart(from.indices(), to);
    AddPart(from.dense_shape(), to);
  }
}

// A tensor that is a view of a message, and the parts that the message stores in another form.
struct Read {
  std::vector<int64_t> dims;
  std::vector<uint64_t> offsets;
  std::vector<std::vector<int64_t>> parts;
  Tensor tensor;
};

// Returns the number of values. InvalidArgument if a dim is negative or the dims are too large.
absl::StatusOr<uint64_t> CountValues(const std::vector<int64_t>& dims) {
  uint64_t count = 1;
  for (int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count))
      return absl::InvalidArgumentError("a constant has invalid dimensions");
  }
  return count;
}

absl::Status ReadStrings(const dataset::wire::Tensor& from, uint64_t count, Read& to) {
  if (static_cast<uint64_t>(from.lengths_size()) != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("a constant of ", count, " strings contains ", from.lengths_size()));
  }
  to.offsets.push_back(0);
  for (uint64_t length : from.lengths()) {
    if (length > from.values().size() - to.offsets.back())
      return absl::InvalidArgumentError("the strings of a constant are longer than its bytes");
    to.offsets.push_back(to.offsets.back() + length);
  }
  if (to.offsets.back() != from.values().size())
    return absl::InvalidArgumentError("the strings of a constant are shorter than its bytes");
  to.tensor = Tensor(kString, to.dims, to.offsets.data(), from.values().data());
  return absl::OkStatus();
}

absl::Status ReadValues(const dataset::wire::Tensor& from, DType dtype, uint64_t count, Read& to) {
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, SizeOf(dtype), &bytes) || bytes != from.values().size()) {
    return absl::InvalidArgumentError(absl::StrCat("a constant of ", count, " values of ",
                                                   std::string(Name(dtype)), " contains ",
                                                   from.values().size(), " bytes"));
  }
  if (dtype == kBool) {
    for (char value : from.values())
      if (value != 0 && value != 1)
        return absl::InvalidArgumentError("a constant contains a bool that is neither 0 nor 1");
  }
  to.tensor = Tensor(dtype, to.dims, from.values().data());
  return absl::OkStatus();
}

absl::Status ReadTensorParts(const dataset::wire::Tensor& from, const TensorSpec& spec, Read& to) {
  const int wanted = spec.kind == TensorSpec::Kind::kRagged   ? spec.ragged_rank
                     : spec.kind == TensorSpec::Kind::kSparse ? 2
                                                              : 0;
  if (from.parts_size() != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("a constant has ", from.parts_size(), " parts instead of ", wanted));
  }
  for (const dataset::wire::Part& part : from.parts())
    to.parts.emplace_back(part.values().begin(), part.values().end());
  const std::vector<absl::Span<const int64_t>> views(to.parts.begin(), to.parts.end());
  if (spec.kind == TensorSpec::Kind::kRagged) to.tensor.SetRagged(views);
  if (spec.kind == TensorSpec::Kind::kSparse) to.tensor.SetSparse(views[0], views[1]);
  return absl::OkStatus();
}

absl::Status ReadTensor(const dataset::wire::Tensor& from, const TensorSpec& spec, Read& to) {
  if (from.left_out()) {
    if (spec.optional) return absl::OkStatus();
    return absl::InvalidArgumentError("a constant leaves out a leaf that is not optional");
  }
  to.dims.assign(from.dims().begin(), from.dims().end());
  ASSIGN_OR_RETURN(const uint64_t count, CountValues(to.dims));
  RETURN_IF_ERROR(spec.dtype == kString ? ReadStrings(from, count, to)
                                        : ReadValues(from, spec.dtype, count, to));
  return ReadTensorParts(from, spec, to);
}

}  // namespace

void ToProto(const Element& from, dataset::wire::Element& to) {
  ToProto(from.spec(), *to.mutable_spec());
  for (size_t i = 0; i < from.size(); ++i) TensorToProto(from.tensor(i), *to.add_tensors());
}

absl::StatusOr<Element> FromProto(const dataset::wire::Element& from) {
  ASSIGN_OR_RETURN(const Spec spec, FromProto(from.spec()));
  if (static_cast<size_t>(from.tensors_size()) != spec.leaves().size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a constant has ", from.tensors_size(), " tensors for ", spec.leaves().size(), " leaves"));
  }
  std::vector<Read> reads(spec.leaves().size());
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < reads.size(); ++i) {
    RETURN_IF_ERROR(ReadTensor(from.tensors(static_cast<int>(i)), spec.leaves()[i], reads[i]));
    tensors.push_back(reads[i].tensor);
  }
  ASSIGN_OR_RETURN(Element element, MakeElement(DefaultPool(), tensors, spec));
  // CheckBlock() examines row splits, indices and shapes, as in received blocks.
  const absl::StatusOr<size_t> checked = CheckBlock(element.block(), spec);
  if (!checked.ok())
    return absl::InvalidArgumentError(absl::StrCat("a constant: ", checked.status().message()));
  return element;
}

}  // namespace penstock
