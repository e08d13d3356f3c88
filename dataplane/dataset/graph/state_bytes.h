// SPDX-License-Identifier: Apache-2.0
// Positions as bytes: unsigned varints, zig-zag integers and strings, read in the order in which
// they were written.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock {

class StateWriter {
 public:
  explicit StateWriter(uint64_t save_number = 0) : save_number_(save_number) {}

  void WriteUnsigned(uint64_t value);
  void WriteInt(int64_t value);
  void WriteBool(bool value) { WriteUnsigned(value ? 1 : 0); }
  void WriteString(std::string_view value);

  // The number by which CommitListeners know this state; 0: it is never committed.
  uint64_t save_number() const { return save_number_; }

  // If save_number() is 0, the bytes may be kept and become part of a later state. For that case a
  // node attaches a callback here. The callback may run at any later time, on the thread that
  // saves.
  using WhenPartOf = std::function<absl::Status(StateWriter& state)>;
  void Attach(WhenPartOf when) { attached_.push_back(std::move(when)); }
  std::vector<WhenPartOf> TakeAttached() { return std::exchange(attached_, {}); }
  // Writes kept bytes, runs the callbacks attached to them, and takes over the record of the splits
  // that the bytes need.
  absl::Status WriteKept(const StateWriter& kept, const std::vector<WhenPartOf>& attached);

  // Notes that a reader that continues from these bytes will never need a split of the provider
  // before the one that is named here (split.h). If called several times for a provider, the
  // earliest split counts.
  void NeedsSplits(int provider, int64_t repetition, int64_t ordinal);
  // Notes that a reader that continues from these bytes may need any split of all providers.
  void NeedsAllSplits() { needs_all_splits_ = true; }
  // Repetition and ordinal by provider. If a provider is missing, all of its splits may be needed.
  using SplitsNeeded = std::map<int, std::pair<int64_t, int64_t>>;
  SplitsNeeded splits_needed() const { return needs_all_splits_ ? SplitsNeeded() : splits_needed_; }

  std::string Take() && { return std::move(bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  uint64_t save_number_;
  std::string bytes_;
  std::vector<WhenPartOf> attached_;
  SplitsNeeded splits_needed_;
  bool needs_all_splits_ = false;
};

// Reads the values that a StateWriter wrote, from bytes that may be damaged. DataLoss at the end of
// the bytes and for encodings that no writer produces. Does not own the bytes.
class StateReader {
 public:
  explicit StateReader(std::string_view bytes) : rest_(bytes) {}

  absl::StatusOr<uint64_t> ReadUnsigned();
  absl::StatusOr<int64_t> ReadInt();
  // Returns an integer in [min, max]; otherwise DataLoss names `what`.
  absl::StatusOr<int64_t> ReadIntIn(int64_t min, int64_t max, std::string_view what);
  absl::StatusOr<bool> ReadBool();
  absl::StatusOr<std::string_view> ReadString();  // valid as long as the bytes

  std::string_view rest() const { return rest_; }  // not read yet
  bool AtEnd() const { return rest_.empty(); }
  // DataLoss if any bytes remain.
  absl::Status ExpectEnd() const;

 private:
  std::string_view rest_;
};

}  // namespace penstock
