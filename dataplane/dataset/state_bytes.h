// SPDX-License-Identifier: Apache-2.0
// Positions as bytes: unsigned varints, zig-zag integers and strings, read in
// the order they were written.
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

  // What CommitListeners will call this state; 0: it is never committed.
  uint64_t save_number() const { return save_number_; }

  // Where bytes are kept to become part of a later state (save_number() 0): what else
  // their node has to do when they do. Any time after, on the thread that saves.
  using WhenPartOf = std::function<absl::Status(StateWriter& state)>;
  void Attach(WhenPartOf when) { attached_.push_back(std::move(when)); }
  std::vector<WhenPartOf> TakeAttached() { return std::exchange(attached_, {}); }
  // Writes bytes that were kept, with what was attached to them and what they need.
  absl::Status WriteKept(const StateWriter& kept, const std::vector<WhenPartOf>& attached);

  // Of what a partition was given (split.h): whoever goes on from these bytes asks for no split of
  // the provider before that one, ever. Of several of one provider the first counts.
  void NeedsSplits(int provider, int64_t repetition, int64_t ordinal);
  // Whoever does may ask for any of all providers.
  void NeedsAllSplits() { needs_all_splits_ = true; }
  // By provider: repetition and ordinal. Of a provider that is missing all may be needed.
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

// Reads what a StateWriter wrote, from bytes that may be damaged: DataLoss at
// the end of the bytes and for numbers that no writer writes. Does not own them.
class StateReader {
 public:
  explicit StateReader(std::string_view bytes) : rest_(bytes) {}

  absl::StatusOr<uint64_t> ReadUnsigned();
  absl::StatusOr<int64_t> ReadInt();
  // An integer of [min, max]; DataLoss names `what` otherwise.
  absl::StatusOr<int64_t> ReadIntIn(int64_t min, int64_t max, std::string_view what);
  absl::StatusOr<bool> ReadBool();
  absl::StatusOr<std::string_view> ReadString();  // lives as long as the bytes

  std::string_view rest() const { return rest_; }  // what is not read yet
  bool AtEnd() const { return rest_.empty(); }
  // DataLoss if something is left.
  absl::Status ExpectEnd() const;

 private:
  std::string_view rest_;
};

}  // namespace penstock
