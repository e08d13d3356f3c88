// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/dataset/transforms/text_of.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/check.h"

namespace penstock {
namespace {

std::string Value(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case kBool:
      return tensor.data<bool>()[i] ? "true" : "false";
    case kUInt8:
      return absl::StrCat(tensor.data<uint8_t>()[i]);
    case kInt16:
      return absl::StrCat(tensor.data<int16_t>()[i]);
    case kUInt16:
      return absl::StrCat(tensor.data<uint16_t>()[i]);
    case kInt32:
      return absl::StrCat(tensor.data<int32_t>()[i]);
    case kInt64:
      return absl::StrCat(tensor.data<int64_t>()[i]);
    case kFloat32:
      return absl::StrCat(tensor.data<float>()[i]);
    case kString:
      return std::string(tensor.string(i));
    default:
      return std::string(Name(tensor.dtype()));
  }
}

// Returns values from number `next` on, in the shape of dims[d …].
std::string Dense(const Tensor& tensor, size_t d, int64_t& next) {
  if (d == tensor.dims().size()) return Value(tensor, next++);
  std::vector<std::string> parts;
  for (int64_t i = 0; i < tensor.dims()[d]; ++i) parts.push_back(Dense(tensor, d + 1, next));
  return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
}

// Returns row number `row` of level `level`.
std::string RaggedRow(const Tensor& tensor, int level, int64_t row, int64_t& next) {
  std::vector<std::string> parts;
  const absl::Span<const int64_t> splits = tensor.row_splits(level);
  for (int64_t i = splits[row]; i < splits[row + 1]; ++i) {
    parts.push_back(level + 1 < tensor.ragged_rank() ? RaggedRow(tensor, level + 1, i, next)
                                                     : Dense(tensor, 1, next));
  }
  return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
}

std::string TextOf(const Tensor& tensor) {
  int64_t next = 0;
  if (tensor.ragged_rank() == 0) return Dense(tensor, 0, next);
  std::vector<std::string> rows;
  for (size_t row = 0; row + 1 < tensor.row_splits(0).size(); ++row)
    rows.push_back(RaggedRow(tensor, 0, static_cast<int64_t>(row), next));
  return absl::StrCat("[", absl::StrJoin(rows, ", "), "]");
}

std::string TextOf(const Element& element, const Spec& spec, size_t& leaf) {
  if (spec.kind() == Spec::Kind::kLeaf) return TextOf(element.tensor(leaf++));
  std::vector<std::string> members;
  for (size_t i = 0; i < spec.size(); ++i) {
    std::string member = TextOf(element, spec.member(i), leaf);
    if (spec.kind() == Spec::Kind::kDict)
      member = absl::StrCat(std::string(spec.key(i)), ": ", member);
    members.push_back(std::move(member));
  }
  const bool dict = spec.kind() == Spec::Kind::kDict;
  return absl::StrCat(dict ? "{" : "(", absl::StrJoin(members, ", "), dict ? "}" : ")");
}

}  // namespace

std::string TextOf(const Element& element) {
  size_t leaf = 0;
  return TextOf(element, element.spec(), leaf);
}

std::vector<std::string> ReadAll(const Dataset& dataset, ReadOptions options) {
  const auto error = [](const absl::Status& status) {
    return absl::StrCat("error: ", std::string(status.message()));
  };
  RunContext context;
  context.seed = options.seed;
  context.threads = options.threads;
  context.files = options.files;
  absl::StatusOr<std::unique_ptr<NodeIterator>> iterator = BuildIterator(dataset, context);
  if (!iterator.ok()) return {error(iterator.status())};
  std::vector<std::string> texts;
  while (static_cast<int64_t>(texts.size()) < options.limit) {
    absl::StatusOr<std::optional<Element>> next = (*iterator)->Next();
    if (next.ok() && !next->has_value()) break;
    texts.push_back(next.ok() ? TextOf(**next) : error(next.status()));
  }
  return texts;
}

}  // namespace penstock
