// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/proto/dataset.pb.h"
#include "dataplane/dataset/graph/attr_proto.h"
#include "dataplane/dataset/graph/definition.h"
#include "include/status_macros.h"
#include "penstock/tensor.h"

namespace penstock {
namespace {

// More dimensions than any tensor has; limits the memory that a few bytes can request.
constexpr int kMaxRank = 64;

absl::Status CheckRaggedRank(const TensorSpec& spec, uint32_t ragged_rank) {
  const bool ragged = spec.kind == TensorSpec::Kind::kRagged;
  if (ragged ? ragged_rank >= 1 && ragged_rank <= Tensor::kMaxRaggedRank : ragged_rank == 0)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a leaf of kind ", static_cast<int>(spec.kind),
                                                 " has ragged rank ", ragged_rank));
}

}  // namespace

void ToProto(const TensorSpec& from, dataset::wire::TensorSpec& to) {
  to.set_dtype(static_cast<uint32_t>(from.dtype));
  to.set_kind(static_cast<uint32_t>(from.kind));
  to.set_ragged_rank(from.ragged_rank);
  to.set_optional(from.optional);
  to.set_unknown_rank(!from.shape.has_rank());
  if (!from.shape.has_rank()) return;
  for (int64_t dim : from.shape.dims()) to.add_dims(dim);
}

absl::StatusOr<TensorSpec> FromProto(const dataset::wire::TensorSpec& from) {
  TensorSpec to;
  if (from.dtype() > 255 || !IsKnown(static_cast<DType>(from.dtype())))
    return absl::InvalidArgumentError(absl::StrCat("unknown dtype number ", from.dtype()));
  to.dtype = static_cast<DType>(from.dtype());
  if (from.kind() > static_cast<uint32_t>(TensorSpec::Kind::kSparse))
    return absl::InvalidArgumentError(absl::StrCat("unknown leaf kind ", from.kind()));
  to.kind = static_cast<TensorSpec::Kind>(from.kind());
  RETURN_IF_ERROR(CheckRaggedRank(to, from.ragged_rank()));
  to.ragged_rank = static_cast<int>(from.ragged_rank());
  to.optional = from.optional();
  if (from.dims_size() > kMaxRank)
    return absl::InvalidArgumentError(
        absl::StrCat("a leaf has too many dimensions: ", from.dims_size()));
  for (int64_t dim : from.dims())
    if (dim < kUnknownDim)
      return absl::InvalidArgumentError(absl::StrCat("a dimension is invalid: ", dim));
  to.shape = from.unknown_rank()
                 ? Shape::UnknownRank()
                 : Shape(std::vector<int64_t>(from.dims().begin(), from.dims().end()));
  return to;
}

void ToProto(const Spec& from, dataset::wire::Spec& to) {
  to.set_kind(static_cast<uint32_t>(from.kind()));
  if (from.kind() == Spec::Kind::kLeaf) return ToProto(from.leaf(), *to.mutable_leaf());
  for (size_t i = 0; i < from.size(); ++i) {
    ToProto(from.member(i), *to.add_members());
    if (from.kind() == Spec::Kind::kDict) to.add_keys(std::string(from.key(i)));
  }
}

absl::StatusOr<Spec> FromProto(const dataset::wire::Spec& from) {
  if (from.kind() > static_cast<uint32_t>(Spec::Kind::kDict))
    return absl::InvalidArgumentError(absl::StrCat("unknown nest kind ", from.kind()));
  const auto kind = static_cast<Spec::Kind>(from.kind());
  if (kind == Spec::Kind::kLeaf) {
    ASSIGN_OR_RETURN(TensorSpec leaf, FromProto(from.leaf()));
    return Spec(std::move(leaf));
  }
  std::vector<Spec> members;
  for (const dataset::wire::Spec& member : from.members()) {
    ASSIGN_OR_RETURN(Spec spec, FromProto(member));
    members.push_back(std::move(spec));
  }
  if (kind == Spec::Kind::kTuple) return Spec::Tuple(std::move(members));
  if (from.keys_size() != from.members_size()) {
    return absl::InvalidArgumentError(absl::StrCat("a dict has ", from.keys_size(), " keys for ",
                                                   from.members_size(), " members"));
  }
  std::vector<std::pair<std::string, Spec>> entries;
  for (int i = 0; i < from.keys_size(); ++i) {
    if (i > 0 && from.keys(i - 1) >= from.keys(i))
      return absl::InvalidArgumentError("the keys of a dict are not sorted");
    entries.emplace_back(from.keys(i), std::move(members[i]));
  }
  return Spec::Dict(std::move(entries));
}

std::string SerializeSpec(const Spec& spec) {
  dataset::wire::Spec message;
  ToProto(spec, message);
  return message.SerializeAsString();
}

absl::StatusOr<Spec> ParseSpec(std::string_view bytes) {
  dataset::wire::Spec message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return absl::InvalidArgumentError("the bytes are not a spec");
  return FromProto(message);
}

}  // namespace penstock
