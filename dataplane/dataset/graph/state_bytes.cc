// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/graph/state_bytes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock {

void StateWriter::WriteUnsigned(uint64_t value) {
  while (value >= 0x80) {
    bytes_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  bytes_.push_back(static_cast<char>(value));
}

void StateWriter::WriteInt(int64_t value) {
  const uint64_t bits = static_cast<uint64_t>(value);
  WriteUnsigned((bits << 1) ^ (value < 0 ? ~uint64_t{0} : 0));
}

void StateWriter::WriteString(std::string_view value) {
  WriteUnsigned(value.size());
  bytes_.append(value);
}

void StateWriter::NeedsSplits(int provider, int64_t repetition, int64_t ordinal) {
  const std::pair needed(repetition, ordinal);
  const auto [at, first] = splits_needed_.try_emplace(provider, needed);
  if (!first) at->second = std::min(at->second, needed);
}

absl::Status StateWriter::WriteKept(const StateWriter& kept,
                                    const std::vector<WhenPartOf>& attached) {
  WriteString(kept.bytes());
  for (const auto& [provider, needed] : kept.splits_needed_)
    NeedsSplits(provider, needed.first, needed.second);
  needs_all_splits_ |= kept.needs_all_splits_;
  for (const WhenPartOf& when : attached) {
    if (absl::Status status = when(*this); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> StateReader::ReadUnsigned() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return absl::DataLossError("a saved position ends too early");
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    if (shift == 63 && byte > 1) break;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return absl::DataLossError("a saved position contains a number of more than 64 bits");
}

absl::StatusOr<int64_t> StateReader::ReadInt() {
  ASSIGN_OR_RETURN(const uint64_t bits, ReadUnsigned());
  return static_cast<int64_t>((bits >> 1) ^ (bits & 1 ? ~uint64_t{0} : 0));
}

absl::StatusOr<int64_t> StateReader::ReadIntIn(int64_t min, int64_t max, std::string_view what) {
  ASSIGN_OR_RETURN(const int64_t value, ReadInt());
  if (value < min || value > max) {
    return absl::DataLossError(absl::StrCat("a saved position contains ", value, " for ",
                                            std::string(what), ", which is outside [", min, ", ",
                                            max, "]"));
  }
  return value;
}

absl::StatusOr<bool> StateReader::ReadBool() {
  ASSIGN_OR_RETURN(const uint64_t value, ReadUnsigned());
  if (value > 1) return absl::DataLossError("a saved position contains an invalid bool");
  return value == 1;
}

absl::StatusOr<std::string_view> StateReader::ReadString() {
  ASSIGN_OR_RETURN(const uint64_t size, ReadUnsigned());
  if (size > rest_.size()) return absl::DataLossError("a saved position ends within a string");
  const std::string_view value = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return value;
}

absl::Status StateReader::ExpectEnd() const {
  if (AtEnd()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("a saved position is followed by ", rest_.size(), " extra bytes"));
}

}  // namespace penstock
