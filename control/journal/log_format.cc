// SPDX-License-Identifier: Apache-2.0
#include "control/journal/log_format.h"

#include <bit>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "control/journal/checksum.h"

namespace penstock::control {
namespace {

static_assert(std::endian::native == std::endian::little, "the log is little-endian");

constexpr char kLogMagic[8] = {'P', 'S', 'T', 'K', 'J', 'L', 'O', 'G'};
constexpr uint32_t kRecordMagic = 0x4b525350;  // "PSRK"
constexpr uint32_t kMarkMagic = 0x4b4d5350;    // "PSMK"

struct RecordHeader {
  uint32_t magic;
  uint32_t length;  // the number of bytes after the header
  uint64_t sequence;
  uint64_t group;
  uint32_t body_checksum;
  uint32_t header_checksum;  // of the fields before it
};
static_assert(sizeof(RecordHeader) == kRecordHeaderBytes, "fixed in docs/journal.md");

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t checksum;  // of the fields before it
};
static_assert(sizeof(FileHeader) == kLogHeaderBytes, "fixed in docs/journal.md");

struct Found {
  RecordHeader header;
  std::string_view bytes;
  bool is_mark() const { return header.magic == kMarkMagic; }
};

// Returns the complete, undamaged record or mark at `offset`, if there is one.
std::optional<Found> RecordAt(std::string_view log, size_t offset) {
  if (log.size() - offset < kRecordHeaderBytes) return std::nullopt;
  Found found;
  std::memcpy(&found.header, log.data() + offset, kRecordHeaderBytes);
  if ((found.header.magic != kRecordMagic && !found.is_mark()) ||
      found.header.header_checksum !=
          Checksum(&found.header, offsetof(RecordHeader, header_checksum)) ||
      found.header.length > log.size() - offset - kRecordHeaderBytes) {
    return std::nullopt;
  }
  found.bytes = log.substr(offset + kRecordHeaderBytes, found.header.length);
  if (found.header.body_checksum != Checksum(found.bytes.data(), found.bytes.size())) {
    return std::nullopt;
  }
  return found;
}

// Returns a complete record or mark after `offset` that was written after record `expected` had
// been synced. If such a record or mark exists, record `expected` was durable.
std::optional<Found> LaterGroup(std::string_view log, size_t offset, uint64_t expected) {
  for (++offset; offset + kRecordHeaderBytes <= log.size(); ++offset) {
    std::optional<Found> found = RecordAt(log, offset);
    if (found.has_value() && found->header.group > expected) return found;
  }
  return std::nullopt;
}

absl::Status Damaged(const std::string& name, uint64_t sequence, size_t offset,
                     const std::string& why) {
  return absl::DataLossError(absl::StrCat(
      "journal ", name, ": record ", sequence, " at offset ", offset, " is damaged (", why,
      "); restore the directory from a copy; `penstock journal verify` "
      "shows the damage"));
}

}  // namespace

std::string LogHeader(uint32_t version) {
  FileHeader header;
  std::memcpy(header.magic, kLogMagic, sizeof kLogMagic);
  header.version = version;
  header.checksum = Checksum(&header, offsetof(FileHeader, checksum));
  return std::string(reinterpret_cast<const char*>(&header), sizeof header);
}

static void Append(uint32_t magic, uint64_t sequence, uint64_t group, std::string_view bytes,
                   std::string& log) {
  RecordHeader header{.magic = magic,
                      .length = static_cast<uint32_t>(bytes.size()),
                      .sequence = sequence,
                      .group = group,
                      .body_checksum = Checksum(bytes.data(), bytes.size()),
                      .header_checksum = 0};
  header.header_checksum = Checksum(&header, offsetof(RecordHeader, header_checksum));
  log.append(reinterpret_cast<const char*>(&header), sizeof header);
  log.append(bytes);
}

void AppendRecord(uint64_t sequence, uint64_t group, std::string_view bytes, std::string& log) {
  Append(kRecordMagic, sequence, group, bytes, log);
}

// LaterGroup treats a mark like a record of the next group.
void AppendMark(uint64_t sequence, std::string& log) {
  Append(kMarkMagic, sequence, sequence + 1, "", log);
}

absl::StatusOr<ParsedLog> ParseLog(std::string_view log, uint64_t first,
                                   std::optional<uint64_t> next, const std::string& name) {
  ParsedLog parsed;
  uint64_t expected = first;
  auto torn = [&](size_t offset) -> absl::StatusOr<ParsedLog> {
    if (std::optional<Found> later = LaterGroup(log, offset, expected); later.has_value()) {
      return Damaged(name, expected, offset,
                     later->is_mark()
                         ? absl::StrCat("a later mark shows that record ", later->header.sequence,
                                        " was durable")
                         : absl::StrCat("record ", later->header.sequence, " after it is intact"));
    }
    if (next.has_value() && *next == expected) {
      parsed.valid_bytes = offset;
      return parsed;
    }
    if (next.has_value()) return Damaged(name, expected, offset, "a later log file follows");
    parsed.cut = absl::StrCat("journal ", name, ": cut ", log.size() - offset, " bytes at offset ",
                              offset, ", where record ", expected, " is incomplete");
    parsed.valid_bytes = offset;
    return parsed;
  };

  FileHeader header;
  if (log.empty() && !next.has_value()) return parsed;  // the file was just made
  if (log.size() < sizeof header) return torn(0);
  std::memcpy(&header, log.data(), sizeof header);
  if (std::memcmp(header.magic, kLogMagic, sizeof kLogMagic) != 0 ||
      header.checksum != Checksum(&header, offsetof(FileHeader, checksum))) {
    return absl::DataLossError(absl::StrCat("journal ", name, ": its header is damaged"));
  }
  if (header.version > kLogVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("journal ", name, " has version ", header.version,
                     ", but this release reads versions up to ", kLogVersion,
                     "; start the newer release that wrote it"));
  }

  size_t offset = sizeof header;
  while (offset < log.size()) {
    std::optional<Found> found = RecordAt(log, offset);
    if (!found.has_value()) return torn(offset);
    const uint64_t number = found->is_mark() ? expected - 1 : expected;
    if (found->header.sequence != number) {
      return Damaged(name, expected, offset,
                     absl::StrCat("found number ", found->header.sequence, " in its place"));
    }
    offset += kRecordHeaderBytes + found->bytes.size();
    if (found->is_mark()) continue;
    parsed.records.push_back({expected, std::string(found->bytes)});
    ++expected;
  }
  parsed.valid_bytes = offset;
  return parsed;
}

}  // namespace penstock::control
