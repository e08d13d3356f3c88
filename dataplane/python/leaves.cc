// SPDX-License-Identifier: Apache-2.0
#include "dataplane/python/leaves.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock::python_host {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kLeafWords = 4;  // of a leaf, without its dims
constexpr size_t kMostRank = 64;

size_t Aligned(size_t at) {
  return (at + kAlignment - 1) / kAlignment * kAlignment;
}

size_t HeadBytes(absl::Span<const Tensor> leaves) {
  size_t words = 1;
  for (const Tensor& leaf : leaves) words += kLeafWords + leaf.dims().size();
  return words * kWord;
}

size_t OffsetBytes(const Tensor& strings) {
  return (strings.element_count() + 1) * kWord;
}

size_t StringBytes(const Tensor& strings) {
  size_t bytes = 0;
  for (int64_t i = 0; i < strings.element_count(); ++i) bytes += strings.string(i).size();
  return bytes;
}

size_t ValueBytes(const Tensor& leaf) {
  return leaf.dtype() == kString ? OffsetBytes(leaf) + StringBytes(leaf) : leaf.byte_count();
}

void WriteStrings(const Tensor& strings, std::byte* to) {
  std::byte* bytes = to + OffsetBytes(strings);
  uint64_t end = 0;
  std::memcpy(to, &end, kWord);
  for (int64_t i = 0; i < strings.element_count(); ++i) {
    const std::string_view string = strings.string(i);
    std::memcpy(bytes + end, string.data(), string.size());
    end += string.size();
    std::memcpy(to + (i + 1) * kWord, &end, kWord);
  }
}

// Reads words in order, and never beyond the end of the memory.
class Words {
 public:
  explicit Words(absl::Span<const std::byte> from) : from_(from) {}

  absl::StatusOr<uint64_t> Next() {
    if (from_.size() - at_ < kWord)
      return absl::InternalError("a Python process returned fewer leaves than it announced");
    uint64_t word;
    std::memcpy(&word, from_.data() + at_, kWord);
    at_ += kWord;
    return word;
  }

 private:
  const absl::Span<const std::byte> from_;
  size_t at_ = 0;
};

struct Leaf {
  std::vector<int64_t> dims;
  absl::Span<const std::byte> values;
  uint64_t count = 1;
};

absl::Status Malformed(size_t i, std::string_view what) {
  return absl::InternalError(
      absl::StrCat("output ", i, " of a Python process: ", std::string(what)));
}

absl::StatusOr<Leaf> NextLeaf(Words& words, absl::Span<const std::byte> from, size_t i,
                              DType dtype) {
  ASSIGN_OR_RETURN(const uint64_t given, words.Next());
  if (given != static_cast<uint64_t>(dtype))
    return Malformed(i, absl::StrCat("the dtype is number ", given, ", not ", Name(dtype)));
  ASSIGN_OR_RETURN(const uint64_t rank, words.Next());
  if (rank > kMostRank) return Malformed(i, absl::StrCat("the rank is too large: ", rank));
  ASSIGN_OR_RETURN(const uint64_t offset, words.Next());
  ASSIGN_OR_RETURN(const uint64_t bytes, words.Next());
  if (offset > from.size() || bytes > from.size() - offset)
    return Malformed(i, "it is outside the shared memory");
  Leaf leaf{.values = from.subspan(offset, bytes)};
  for (uint64_t k = 0; k < rank; ++k) {
    ASSIGN_OR_RETURN(const uint64_t dim, words.Next());
    if (dim > INT64_MAX || __builtin_mul_overflow(leaf.count, dim, &leaf.count))
      return Malformed(i, "the dims are too large");
    leaf.dims.push_back(static_cast<int64_t>(dim));
  }
  return leaf;
}

absl::Status GiveStrings(const Leaf& leaf, size_t i, ElementOutputs& out) {
  const size_t words = leaf.values.size() / kWord;
  if (words == 0 || leaf.count > words - 1) return Malformed(i, "string offsets are missing");
  std::vector<uint64_t> ends(leaf.count + 1);
  std::memcpy(ends.data(), leaf.values.data(), ends.size() * kWord);
  const absl::Span<const std::byte> bytes = leaf.values.subspan(ends.size() * kWord);
  std::vector<std::string> strings;
  for (size_t k = 0; k < leaf.count; ++k) {
    if (ends[k] > ends[k + 1] || ends[k + 1] > bytes.size())
      return Malformed(i, "string offsets are out of range");
    strings.emplace_back(reinterpret_cast<const char*>(bytes.data()) + ends[k],
                         ends[k + 1] - ends[k]);
  }
  return out.OutputStrings(i, leaf.dims, strings);
}

absl::Status GiveValues(const Leaf& leaf, size_t i, DType dtype, ElementOutputs& out) {
  uint64_t bytes;
  if (__builtin_mul_overflow(leaf.count, SizeOf(dtype), &bytes) || bytes != leaf.values.size())
    return Malformed(i, "the number of bytes does not match its dims");
  ASSIGN_OR_RETURN(const absl::Span<std::byte> to, out.Output(i, leaf.dims));
  std::memcpy(to.data(), leaf.values.data(), leaf.values.size());
  return absl::OkStatus();
}

}  // namespace

size_t BytesOfLeaves(absl::Span<const Tensor> leaves) {
  size_t at = HeadBytes(leaves);
  for (const Tensor& leaf : leaves) at = Aligned(at) + ValueBytes(leaf);
  return at;
}

void WriteLeaves(absl::Span<const Tensor> leaves, absl::Span<std::byte> to) {
  auto* word = reinterpret_cast<uint64_t*>(to.data());
  *word++ = leaves.size();
  size_t at = HeadBytes(leaves);
  for (const Tensor& leaf : leaves) {
    at = Aligned(at);
    const size_t bytes = ValueBytes(leaf);
    *word++ = static_cast<uint64_t>(leaf.dtype());
    *word++ = leaf.dims().size();
    *word++ = at;
    *word++ = bytes;
    for (const int64_t dim : leaf.dims()) *word++ = static_cast<uint64_t>(dim);
    if (leaf.dtype() == kString) {
      WriteStrings(leaf, to.data() + at);
    } else if (bytes > 0) {
      std::memcpy(to.data() + at, leaf.raw(), bytes);
    }
    at += bytes;
  }
}

absl::Status ReadLeaves(absl::Span<const std::byte> from, absl::Span<const TensorSpec> specs,
                        ElementOutputs& out) {
  Words words(from);
  ASSIGN_OR_RETURN(const uint64_t count, words.Next());
  if (count != specs.size()) {
    return absl::InternalError(
        absl::StrCat("a Python process returned ", count, " leaves, not ", specs.size()));
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    ASSIGN_OR_RETURN(const Leaf leaf, NextLeaf(words, from, i, specs[i].dtype));
    RETURN_IF_ERROR(specs[i].dtype == kString ? GiveStrings(leaf, i, out)
                                              : GiveValues(leaf, i, specs[i].dtype, out));
  }
  return absl::OkStatus();
}

}  // namespace penstock::python_host
