// SPDX-License-Identifier: Apache-2.0
#include "penstock/spec.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/check.h"
#include "penstock/export.h"
#include "penstock/fingerprint.h"

namespace penstock {

Shape Shape::UnknownRank() {
  Shape shape;
  shape.dims_.reset();
  return shape;
}

bool Shape::IsStatic() const {
  return has_rank() &&
         std::all_of(dims_->begin(), dims_->end(), [](int64_t dim) { return dim >= 0; });
}

int64_t Shape::ElementCount() const {
  if (!IsStatic()) return kUnknownDim;
  if (std::find(dims_->begin(), dims_->end(), 0) != dims_->end()) return 0;
  int64_t count = 1;
  for (int64_t dim : *dims_) {
    if (__builtin_mul_overflow(count, dim, &count)) return std::numeric_limits<int64_t>::max();
  }
  return count;
}

bool Shape::Admits(absl::Span<const int64_t> dims) const {
  if (!has_rank()) return true;
  return std::equal(dims_->begin(), dims_->end(), dims.begin(), dims.end(),
                    [](int64_t mine, int64_t its) { return mine == kUnknownDim || mine == its; });
}

Shape Shape::MostGeneral(const Shape& other) const {
  if (!has_rank() || !other.has_rank() || rank() != other.rank()) return UnknownRank();
  Shape general = *this;
  for (int i = 0; i < rank(); ++i) {
    if (dim(i) != other.dim(i)) (*general.dims_)[i] = kUnknownDim;
  }
  return general;
}

Shape Shape::WithLeading(int64_t dim) const {
  if (!has_rank()) return *this;
  Shape longer = *this;
  longer.dims_->insert(longer.dims_->begin(), dim);
  return longer;
}

std::string Shape::ToString() const {
  if (!has_rank()) return "<unknown>";
  return absl::StrCat("[",
                      absl::StrJoin(*dims_, ",",
                                    [](std::string* out, int64_t dim) {
                                      absl::StrAppend(out,
                                                      dim == kUnknownDim ? "?" : absl::StrCat(dim));
                                    }),
                      "]");
}

std::string TensorSpec::ToString() const {
  constexpr const char* kNames[] = {"TensorSpec", "RaggedSpec", "SparseSpec"};
  std::string text =
      absl::StrCat(kNames[static_cast<int>(kind)], "(", shape.ToString(), ", ", Name(dtype));
  if (kind == Kind::kRagged) absl::StrAppend(&text, ", ragged_rank=", ragged_rank);
  if (optional) absl::StrAppend(&text, ", optional");
  return text + ")";
}

TensorSpec Scalar(DType dtype) {
  return {.dtype = dtype};
}
TensorSpec Dense(DType dtype, Shape shape) {
  return {.dtype = dtype, .shape = std::move(shape)};
}
TensorSpec Ragged(DType dtype, Shape shape, int ragged_rank) {
  return {.dtype = dtype,
          .shape = std::move(shape),
          .kind = TensorSpec::Kind::kRagged,
          .ragged_rank = ragged_rank};
}
TensorSpec Sparse(DType dtype, Shape dense_shape) {
  return {.dtype = dtype, .shape = std::move(dense_shape), .kind = TensorSpec::Kind::kSparse};
}
TensorSpec Bytes() {
  return Scalar(kString);
}

// Constant after construction.
struct Spec::Rep {
  Kind kind = Kind::kTuple;
  std::vector<Spec> members;
  std::vector<std::string> keys;     // of a dict, ascending
  std::vector<size_t> first_leaves;  // of each member
  std::vector<TensorSpec> leaves;
  uint64_t fingerprint = 0;
  uint64_t structure = 0;

  void AddMember(Spec member);
  void Finish();
};

namespace {

uint64_t FingerprintOf(const Shape& shape, uint64_t seed) {
  if (!shape.has_rank()) return Fingerprint(~uint64_t{0}, seed);
  seed = Fingerprint(static_cast<uint64_t>(shape.rank()), seed);
  for (int64_t dim : shape.dims()) seed = Fingerprint(static_cast<uint64_t>(dim), seed);
  return seed;
}

// Hashes the properties of a leaf that all elements share, no matter how large they are.
uint64_t StructureOf(const TensorSpec& leaf, uint64_t seed) {
  seed = Fingerprint(static_cast<uint64_t>(leaf.dtype), seed);
  seed = Fingerprint(static_cast<uint64_t>(leaf.kind), seed);
  return Fingerprint(static_cast<uint64_t>(leaf.ragged_rank), seed);
}

bool AdmitsShape(const Shape& wanted, const Shape& given) {
  if (!wanted.has_rank()) return true;
  return given.has_rank() && wanted.Admits(given.dims());  // an unknown given dim fits only "?"
}

bool AdmitsLeaf(const TensorSpec& wanted, const TensorSpec& given) {
  return wanted.dtype == given.dtype && wanted.kind == given.kind &&
         wanted.ragged_rank == given.ragged_rank && (wanted.optional || !given.optional) &&
         AdmitsShape(wanted.shape, given.shape);
}

std::string KindName(Spec::Kind kind) {
  constexpr const char* kNames[] = {"a leaf", "a tuple", "a dict"};
  return kNames[static_cast<int>(kind)];
}

// "" + key "a" = "a"; "a" + member 1 = "a[1]"; "a" + key "b" = "a/b".
std::string PathOf(const std::string& path, const Spec& nest, size_t i) {
  if (nest.kind() == Spec::Kind::kTuple) return absl::StrCat(path, "[", i, "]");
  return absl::StrCat(path, path.empty() ? "" : "/", nest.key(i));
}

std::string Where(const std::string& path) {
  return path.empty() ? "the element" : absl::StrCat("'", path, "'");
}

absl::Status AdmitsNest(const Spec& wanted, const Spec& given, const std::string& path) {
  if (wanted.kind() != given.kind()) {
    return absl::InvalidArgumentError(absl::StrCat(
        Where(path), " should be ",
        wanted.kind() == Spec::Kind::kLeaf ? wanted.ToString() : KindName(wanted.kind()),
        " but is ", given.ToString()));
  }
  if (wanted.kind() == Spec::Kind::kLeaf) {
    if (AdmitsLeaf(wanted.leaf(), given.leaf())) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(Where(path), " should be ", wanted.ToString(), " but is ", given.ToString()));
  }
  for (size_t i = 0; i < wanted.size() && i < given.size(); ++i) {
    if (wanted.kind() == Spec::Kind::kDict && wanted.key(i) != given.key(i)) {
      const bool missing = wanted.key(i) < given.key(i);
      return absl::InvalidArgumentError(
          absl::StrCat(Where(PathOf(path, missing ? wanted : given, i)),
                       missing ? " is missing" : " is not expected"));
    }
    absl::Status status = AdmitsNest(wanted.member(i), given.member(i), PathOf(path, wanted, i));
    if (!status.ok()) return status;
  }
  if (wanted.size() == given.size()) return absl::OkStatus();
  const bool missing = wanted.size() > given.size();
  const size_t first = std::min(wanted.size(), given.size());
  return absl::InvalidArgumentError(
      absl::StrCat(Where(PathOf(path, missing ? wanted : given, first)),
                   missing ? " is missing" : " is not expected"));
}

Spec Rebuild(const Spec& spec, const TensorSpec*& next) {
  if (spec.kind() == Spec::Kind::kLeaf) return Spec(*next++);
  std::vector<Spec> members;
  std::vector<std::pair<std::string, Spec>> named;
  for (size_t i = 0; i < spec.size(); ++i) {
    Spec member = Rebuild(spec.member(i), next);
    if (spec.kind() == Spec::Kind::kDict) {
      named.emplace_back(spec.key(i), std::move(member));
    } else {
      members.push_back(std::move(member));
    }
  }
  return spec.kind() == Spec::Kind::kDict ? Spec::Dict(std::move(named))
                                          : Spec::Tuple(std::move(members));
}

}  // namespace

void Spec::Rep::AddMember(Spec member) {
  first_leaves.push_back(leaves.size());
  leaves.insert(leaves.end(), member.leaves().begin(), member.leaves().end());
  members.push_back(std::move(member));
}

void Spec::Rep::Finish() {
  structure = fingerprint = Fingerprint(static_cast<uint64_t>(kind));
  if (kind == Kind::kLeaf) {
    structure = StructureOf(leaves[0], structure);
    fingerprint = FingerprintOf(leaves[0].shape, structure);
    fingerprint = Fingerprint(leaves[0].optional ? 1 : 0, fingerprint);
    return;
  }
  for (size_t i = 0; i < members.size(); ++i) {
    if (kind == Kind::kDict) {
      structure = Fingerprint(keys[i], Fingerprint(uint64_t{keys[i].size()}, structure));
      fingerprint = Fingerprint(keys[i], Fingerprint(uint64_t{keys[i].size()}, fingerprint));
    }
    structure = Fingerprint(members[i].structure_fingerprint(), structure);
    fingerprint = Fingerprint(members[i].fingerprint(), fingerprint);
  }
}

const Spec::Rep& Spec::rep() const {
  static const Rep* const kEmpty = [] {
    auto* empty = new Rep();
    empty->Finish();
    return empty;
  }();
  return rep_ == nullptr ? *kEmpty : *rep_;
}

Spec::Spec(TensorSpec leaf) {
  auto rep = std::make_shared<Rep>();
  rep->kind = Kind::kLeaf;
  rep->leaves.push_back(std::move(leaf));
  rep->Finish();
  rep_ = std::move(rep);
}

Spec Spec::Tuple(std::vector<Spec> members) {
  auto rep = std::make_shared<Rep>();
  for (Spec& member : members) rep->AddMember(std::move(member));
  rep->Finish();
  return Spec(std::move(rep));
}

Spec Spec::Dict(std::vector<std::pair<std::string, Spec>> members) {
  std::stable_sort(members.begin(), members.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  auto rep = std::make_shared<Rep>();
  rep->kind = Kind::kDict;
  for (size_t i = 0; i < members.size(); ++i) {
    if (i + 1 < members.size() && members[i + 1].first == members[i].first) continue;
    rep->keys.push_back(std::move(members[i].first));
    rep->AddMember(std::move(members[i].second));
  }
  rep->Finish();
  return Spec(std::move(rep));
}

Spec::Kind Spec::kind() const {
  return rep().kind;
}

const TensorSpec& Spec::leaf() const {
  PENSTOCK_CHECK(kind() == Kind::kLeaf);
  return rep().leaves[0];
}

size_t Spec::size() const {
  return rep().members.size();
}

const Spec& Spec::member(size_t i) const {
  PENSTOCK_CHECK(i < size());
  return rep().members[i];
}

const std::string& Spec::key(size_t i) const {
  PENSTOCK_CHECK(i < rep().keys.size());
  return rep().keys[i];
}

std::optional<Spec::Found> Spec::Find(std::string_view key) const {
  const Rep& rep = this->rep();
  auto it = std::lower_bound(rep.keys.begin(), rep.keys.end(), key);
  if (it == rep.keys.end() || *it != key) return std::nullopt;
  const size_t i = it - rep.keys.begin();
  return Found{&rep.members[i], rep.first_leaves[i]};
}

absl::Span<const TensorSpec> Spec::leaves() const {
  return rep().leaves;
}

std::string Spec::LeafName(size_t i) const {
  PENSTOCK_CHECK(i < leaves().size());
  const Spec* spec = this;
  std::string path;
  while (spec->kind() != Kind::kLeaf) {
    const std::vector<size_t>& first = spec->rep().first_leaves;
    // The last member that starts at or below leaf i. Earlier members that start at the same leaf
    // are empty.
    const size_t m = std::upper_bound(first.begin(), first.end(), i) - first.begin() - 1;
    path = PathOf(path, *spec, m);
    i -= first[m];
    spec = &spec->rep().members[m];
  }
  return path;
}

Spec Spec::WithLeaves(absl::Span<const TensorSpec> leaves) const {
  PENSTOCK_CHECK(leaves.size() == this->leaves().size());
  const TensorSpec* next = leaves.data();
  return Rebuild(*this, next);
}

absl::Status Spec::Admits(const Spec& other) const {
  return AdmitsNest(*this, other, "");
}

uint64_t Spec::fingerprint() const {
  return rep().fingerprint;
}

uint64_t Spec::structure_fingerprint() const {
  return rep().structure;
}

std::string Spec::ToString() const {
  if (kind() == Kind::kLeaf) return leaf().ToString();
  std::string text = kind() == Kind::kDict ? "{" : "(";
  for (size_t i = 0; i < size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ");
    if (kind() == Kind::kDict) absl::StrAppend(&text, key(i), ": ");
    absl::StrAppend(&text, member(i).ToString());
  }
  if (kind() == Kind::kTuple && size() == 1) text += ",";  // a tuple of one, as Python writes it
  return text + (kind() == Kind::kDict ? "}" : ")");
}

// A friend function does not get the visibility of its namespace.
PENSTOCK_EXPORT bool operator==(const Spec& a, const Spec& b) {
  const Spec::Rep& left = a.rep();
  const Spec::Rep& right = b.rep();
  return &left == &right ||
         (left.fingerprint == right.fingerprint && left.kind == right.kind &&
          left.keys == right.keys && left.leaves == right.leaves && left.members == right.members);
}

}  // namespace penstock
