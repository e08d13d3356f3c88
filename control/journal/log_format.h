// SPDX-License-Identifier: Apache-2.0
// The bytes of a log file: a header, then the records one after the other (docs/journal.md, "The
// log"). Pure functions over bytes.
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

// Returns the first bytes of every log file.
std::string LogHeader(uint32_t version = kLogVersion);

// Appends one record to `log`. `group` is the first sequence of the records that are written and
// synced together with it.
void AppendRecord(uint64_t sequence, uint64_t group, std::string_view bytes, std::string& log);

// Appends a mark: all records up to `sequence` were synced before the mark was written.
void AppendMark(uint64_t sequence, std::string& log);

struct ParsedLog {
  std::vector<Recovered::Record> records;
  size_t valid_bytes = 0;  // the rest is an incomplete record
  std::string cut;         // describes the incomplete record; empty: none
};

// Reads a log whose first record should be number `first`. The next file begins with record `next`;
// nullopt: there is no next file. `name` is for messages.
// - A record that is cut short was never durable, and is cut off. A damaged record is cut off too
//   if neither a whole record of a later group nor a mark follows it.
// - If the next file begins with the number of the record that is cut short or damaged, it was a
//   mark and not a record, and nothing is lost.
// - Any other damage is DataLoss with the record.
// - A log of a newer release is FailedPrecondition.
absl::StatusOr<ParsedLog> ParseLog(std::string_view log, uint64_t first,
                                   std::optional<uint64_t> next, const std::string& name);

}  // namespace penstock::control
