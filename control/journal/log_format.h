// SPDX-License-Identifier: Apache-2.0
// The bytes of a log file: a header, then records, one behind the other
// (docs/journal.md, "The log"). Pure functions over bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "control/journal/journal.h"

namespace penstock::control {

inline constexpr uint32_t kLogVersion = 1;
inline constexpr size_t kLogHeaderBytes = 16;     // magic, version, checksum
inline constexpr size_t kRecordHeaderBytes = 32;  // see AppendRecord

// The first bytes of every log file.
std::string LogHeader(uint32_t version = kLogVersion);

// Appends one record to `log`. `group`: the first sequence of those written and
// synced together with it.
void AppendRecord(uint64_t sequence, uint64_t group, std::string_view bytes, std::string& log);

// Appends a mark: all up to record `sequence` was synced before this was written.
void AppendMark(uint64_t sequence, std::string& log);

struct ParsedLog {
  std::vector<Recovered::Record> records;
  size_t valid_bytes = 0;  // the rest is a torn end
  std::string cut;         // what that is, in words; empty: nothing
};

// Reads a log whose first record should be number `first`, and behind whose last one the next
// file begins with record `next`; nullopt: there is no next file. `name` stands in messages.
// - A record that is cut short, or damaged with neither a whole record of a later
//   group nor a mark behind it, was never durable: a torn end.
// - Where the next file begins with the record that is cut short or damaged, that is a mark and no
//   record, and nothing is lost.
// - Any other damage is DataLoss naming the record.
// - FailedPrecondition for a log of a newer release.
absl::StatusOr<ParsedLog> ParseLog(std::string_view log, uint64_t first,
                                   std::optional<uint64_t> next, const std::string& name);

}  // namespace penstock::control
