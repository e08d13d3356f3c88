// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/window/pack_rows.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/row_view.h"
#include "dataplane/dataset/transforms/batch/padding.h"
#include "dataplane/dataset/transforms/batch/static_batch.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 31;  // positions are int32

// The values of the attribute "too_long", indexed by TooLong.
constexpr const char* kTooLong[] = {"error", "truncate", "split"};

// Returns whether `leaf` is a dense tensor of numbers whose dimensions after the first are known.
bool IsSequence(const TensorSpec& leaf) {
  if (leaf.kind != TensorSpec::Kind::kDense || leaf.optional || leaf.dtype == kString) return false;
  if (!leaf.shape.has_rank() || leaf.shape.rank() < 1) return false;
  const absl::Span<const int64_t> inner = leaf.shape.dims().subspan(1);
  return std::find(inner.begin(), inner.end(), kUnknownDim) == inner.end();
}

absl::Status CheckFeatures(const Spec& element) {
  if (element.kind() != Spec::Kind::kDict || element.size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("elements must be dicts of features, not ",
                                                   element.ToString(), "; name them with a Map"));
  }
  for (size_t f = 0; f < element.size(); ++f) {
    const Spec& feature = element.member(f);
    if (feature.kind() == Spec::Kind::kLeaf && IsSequence(feature.leaf())) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        element.key(f), " is ", feature.ToString(),
        "; only dense sequences of numbers whose inner dimensions are known can be packed"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PackRules> PackRules::Make(int64_t length, const PackOptions& options,
                                          const Spec& element) {
  RETURN_IF_ERROR(CheckFeatures(element));
  PackLengths lengths;
  for (size_t f = 0; f < element.size(); ++f) lengths.emplace_back(element.key(f), length);
  return Make(lengths, options, element);
}

absl::StatusOr<PackRules> PackRules::Make(const PackLengths& lengths, const PackOptions& options,
                                          const Spec& element) {
  RETURN_IF_ERROR(CheckFeatures(element));
  PackRules rules;
  rules.element_ = element;
  rules.lengths_.resize(element.size(), 0);
  for (const auto& [name, length] : lengths) {
    const std::optional<Spec::Found> found = element.Find(name);
    if (!found.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("lengths names \"", absl::CHexEscape(name),
                                                     "\", which is not a feature of ",
                                                     element.ToString()));
    }
    if (length < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("length of ", name, " must be at least 1, not ", length));
    }
    rules.lengths_[found->first_leaf] = length;
  }
  for (size_t f = 0; f < element.size(); ++f) {
    if (rules.lengths_[f] == 0)
      return absl::InvalidArgumentError(absl::StrCat("lengths has no entry for ", element.key(f)));
  }
  rules.too_long_ = options.too_long;
  ASSIGN_OR_RETURN(rules.padding_values_, MakePaddingValues(options.padding_values, element));
  RETURN_IF_ERROR(rules.Complete());
  return rules;
}

absl::StatusOr<PackRules> PackRules::Of(const Attrs& attrs, const Spec& element) {
  RETURN_IF_ERROR(CheckFeatures(element));
  PackRules rules;
  rules.element_ = element;
  rules.lengths_ = Get<std::vector<int64_t>>(attrs, "lengths");
  const std::string& too_long = Get<std::string>(attrs, "too_long");
  const auto* name = std::find(std::begin(kTooLong), std::end(kTooLong), too_long);
  if (name == std::end(kTooLong)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "too_long must be error, truncate or split, not \"", absl::CHexEscape(too_long), "\""));
  }
  rules.too_long_ = static_cast<TooLong>(name - std::begin(kTooLong));
  rules.padding_values_ = Get<ConstantElement>(attrs, "padding_values");
  RETURN_IF_ERROR(CheckPaddingValues(*rules.padding_values_, element));
  RETURN_IF_ERROR(rules.Complete());
  return rules;
}

absl::Status PackRules::Complete() {
  if (lengths_.size() != element_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("lengths must have ", element_.size(),
                                                   " numbers, one for each feature, not ",
                                                   lengths_.size()));
  }
  std::vector<std::pair<std::string, Spec>> members;
  for (size_t f = 0; f < lengths_.size(); ++f) {
    if (lengths_[f] < 1 || lengths_[f] > kMostTokens) {
      return absl::InvalidArgumentError(
          absl::StrCat("length must be in [1, ", kMostTokens, "], not ", lengths_[f]));
    }
    if (too_long_ == TooLong::kSplit && lengths_[f] != lengths_[0]) {
      return absl::InvalidArgumentError("too_long = split needs the same length for all features");
    }
    TensorSpec leaf = element_.member(f).leaf();
    std::vector<int64_t> dims(leaf.shape.dims().begin(), leaf.shape.dims().end());
    dims[0] = lengths_[f];
    leaf.shape = Shape(std::move(dims));
    const std::string key = element_.key(f);
    members.emplace_back(key, leaf);
    members.emplace_back(key + "_segment_ids", Dense(kInt32, Shape({lengths_[f]})));
    members.emplace_back(key + "_positions", Dense(kInt32, Shape({lengths_[f]})));
  }
  packed_ = Spec::Dict(members);
  if (packed_.size() != members.size()) {
    return absl::InvalidArgumentError(
        "a feature has the same name as another feature's _segment_ids or _positions; rename it");
  }
  if (!StaticBatches::Fit(packed_, 1))
    return absl::InvalidArgumentError("length makes rows of more than 1 GiB");
  for (size_t f = 0; f < lengths_.size(); ++f) {
    const std::string key = element_.key(f);
    leaves_.push_back({packed_.Find(key)->first_leaf,
                       packed_.Find(key + "_segment_ids")->first_leaf,
                       packed_.Find(key + "_positions")->first_leaf});
  }
  return absl::OkStatus();
}

void AddPackRules(const PackRules& rules, Attrs& attrs) {
  attrs["lengths"] = rules.lengths_;
  attrs["too_long"] = std::string(kTooLong[static_cast<int>(rules.too_long_)]);
  attrs["padding_values"] = rules.padding_values_;
}

int64_t PackRules::tokens_of_a_row() const {
  int64_t tokens = 0;
  for (int64_t length : lengths_) tokens += length;
  return tokens;
}

absl::Status PackRules::CheckElement(const Element& element) const {
  for (size_t f = 0; f < features(); ++f) {
    const int64_t length = element.tensor(f).dim(0);
    if (too_long_ == TooLong::kError && length > lengths_[f]) {
      return absl::InvalidArgumentError(absl::StrCat(element_.key(f), " has length ", length,
                                                     ", longer than a row of ", lengths_[f],
                                                     "; set too_long to truncate or split it"));
    }
    if (too_long_ == TooLong::kSplit && length != element.tensor(0).dim(0)) {
      return absl::InvalidArgumentError(
          absl::StrCat(element_.key(f), " has length ", length, ", but ", element_.key(0), " has ",
                       element.tensor(0).dim(0), "; features must be equally long to be split"));
    }
  }
  return absl::OkStatus();
}

int64_t PackRules::Pieces(const Element& element) const {
  int64_t pieces = 0;
  for (size_t f = 0; f < features(); ++f) {
    const int64_t length = element.tensor(f).dim(0);
    pieces = std::max(pieces, length / lengths_[f] + (length % lengths_[f] != 0 ? 1 : 0));
  }
  return too_long_ == TooLong::kSplit ? pieces : std::min<int64_t>(pieces, 1);
}

PackRules::Part PackRules::PartOf(const Element& element, size_t feature, int64_t piece) const {
  const int64_t from = piece * lengths_[feature];
  return {from, std::min(lengths_[feature], element.tensor(feature).dim(0) - from)};
}

bool PackedRow::HasRoomFor(const Element& element, int64_t piece) const {
  for (size_t f = 0; f < used_.size(); ++f)
    if (used_[f] + rules_->PartOf(element, f, piece).count > rules_->length(f)) return false;
  return true;
}

void PackedRow::Add(Segment segment) {
  for (size_t f = 0; f < used_.size(); ++f)
    used_[f] += rules_->PartOf(segment.element, f, segment.piece).count;
  segments_.push_back(std::move(segment));
}

bool PackedRow::full() const {
  for (size_t f = 0; f < used_.size(); ++f)
    if (used_[f] == rules_->length(f)) return true;
  return false;
}

absl::Status PackedRow::WriteTo(ResultSink& sink) const {
  for (size_t f = 0; f < used_.size(); ++f) RETURN_IF_ERROR(WriteFeature(f, sink));
  return absl::OkStatus();
}

absl::Status PackedRow::WriteFeature(size_t feature, ResultSink& sink) const {
  const PackRules::Leaves& leaves = rules_->leaves_[feature];
  const TensorSpec& leaf = rules_->packed_.leaves()[leaves.values];
  const int64_t length = rules_->length(feature);
  ASSIGN_OR_RETURN(const absl::Span<std::byte> values,
                   sink.Place(leaves.values, leaf.dtype, leaf.shape.dims()));
  ASSIGN_OR_RETURN(const absl::Span<std::byte> id_bytes,
                   sink.Place(leaves.segment_ids, kInt32, {length}));
  ASSIGN_OR_RETURN(const absl::Span<std::byte> position_bytes,
                   sink.Place(leaves.positions, kInt32, {length}));
  auto* const ids = reinterpret_cast<int32_t*>(id_bytes.data());
  auto* const positions = reinterpret_cast<int32_t*>(position_bytes.data());
  const size_t token_bytes = values.size() / length;
  int64_t next = 0;
  for (size_t s = 0; s < segments_.size(); ++s) {
    const Segment& segment = segments_[s];
    const PackRules::Part part = rules_->PartOf(segment.element, feature, segment.piece);
    const auto* from = static_cast<const std::byte*>(segment.element.tensor(feature).raw());
    if (part.count * token_bytes > 0) {
      std::memcpy(values.data() + next * token_bytes, from + part.from * token_bytes,
                  part.count * token_bytes);
    }
    std::fill_n(ids + next, part.count, static_cast<int32_t>(s) + 1);
    for (int64_t i = 0; i < part.count; ++i) positions[next + i] = static_cast<int32_t>(i);
    next += part.count;
  }
  FillWith(rules_->padding_values_->tensor(feature), values.subspan(next * token_bytes));
  std::fill(ids + next, ids + length, 0);
  std::fill(positions + next, positions + length, 0);
  return absl::OkStatus();
}

absl::StatusOr<Element> PackAll(Pool& pool, absl::Span<const Element> elements,
                                const PackRules& rules, const Spec& batch) {
  std::vector<PackedRow> rows;
  for (size_t i = 0; i < elements.size(); ++i) {
    const Element& element = elements[i];
    RETURN_IF_ERROR(Annotate(rules.CheckElement(element), "element ", i, " of a window"));
    for (int64_t piece = 0; piece < rules.Pieces(element); ++piece) {
      auto row = std::find_if(rows.begin(), rows.end(), [&](const PackedRow& candidate) {
        return candidate.HasRoomFor(element, piece);
      });
      if (row == rows.end()) row = rows.insert(rows.end(), PackedRow(rules));
      row->Add({element.Share(), static_cast<int64_t>(i), piece});
    }
  }
  if (rows.empty()) rows.emplace_back(rules);  // all sequences are empty
  const auto count = static_cast<int64_t>(rows.size());
  if (!StaticBatches::Fit(rules.packed(), count)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a window needs ", count, " rows, which take more than 1 GiB"));
  }
  const StaticBatches batches(pool, rules.packed(), batch, count);
  ASSIGN_OR_RETURN(OpenBatch open, batches.Open());
  for (int64_t r = 0; r < count; ++r) {
    OpenBatch::Row sink = open.row(r);
    RETURN_IF_ERROR(rows[r].WriteTo(sink));
  }
  return batches.Seal(std::move(open), count);
}

}  // namespace penstock
