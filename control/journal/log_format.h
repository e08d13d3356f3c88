// SPDX-License-Identifier: Apache-2.0
// Reads and writes the bytes of a log file: a header, then the records one after the other
// (docs/journal.md, "The log"). Pure functions.
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

// Appends one record to `log`. `group`: the first sequence of the group, that is, of the records
// that are written and synced together.
void AppendRecord(uint64_t sequence, uint64_t group, std::string_view bytes, std::string& log);

// Appends a mark: all records up to `sequence` were synced before the mark was written.
void AppendMark(uint64_t sequence, std::string& log);

struct ParsedLog {
  std::vector<Recovered::Record> records;
  size_t valid_bytes = 0;  // the rest is an incomplete record
  std::string cut;         // describes the incomplete record; empty: none
};

// Reads the bytes of a log file whose first record should have the number `first`. `next`: the
// number of the next file's first record; nullopt if there is no next file. `name`: the file's
// name, for messages.
// - A record that ends too early was never durable, and is cut off. A damaged record is cut off
//   too, unless a complete record of a later group or a mark follows it.
// - If the first record of the next file has the number that the incomplete or damaged record would
//   have, the incomplete or damaged bytes were a mark and not a record, and nothing is lost.
// - Any other damage is DataLoss, with the number of the record.
// - A log that a newer release wrote is FailedPrecondition.
absl::StatusOr<ParsedLog> ParseLog(std::string_view log, uint64_t first,
                                   std::optional<uint64_t> next, const std::string& name);

}  // namespace penstock::control
