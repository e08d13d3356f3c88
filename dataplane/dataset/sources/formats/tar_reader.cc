// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/formats/tar_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr int64_t kBlockBytes = 512;
constexpr int64_t kMaxSize = std::numeric_limits<int64_t>::max() / 4;  // sums do not overflow
constexpr int64_t kMaxExtensionBytes = 1 << 20;

// The position of a header field and its length.
struct TarField {
  size_t offset, bytes;
};
constexpr TarField kName = {0, 100};
constexpr TarField kSize = {124, 12};
constexpr TarField kChecksum = {148, 8};
constexpr size_t kType = 156;
constexpr TarField kMagicField = {257, 6};
constexpr TarField kPrefix = {345, 155};

std::string_view Raw(std::string_view block, TarField field) {
  return block.substr(field.offset, field.bytes);
}

// Returns the text before the first NUL, if there is one.
std::string_view FieldText(std::string_view bytes) {
  return bytes.substr(0, bytes.find('\0'));
}

// Parses octal digits between spaces, or, as in GNU tar, a big-endian number after a set bit.
std::optional<int64_t> Number(std::string_view field) {
  uint64_t value = 0;
  if (static_cast<uint8_t>(field[0]) & 0x80) {
    if (static_cast<uint8_t>(field[0]) != 0x80) return std::nullopt;  // negative, or too large
    for (char c : field.substr(1)) {
      if (value >> 54 != 0) return std::nullopt;
      value = value << 8 | static_cast<uint8_t>(c);
    }
  } else {
    field = FieldText(field);
    while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
    while (!field.empty() && field.back() == ' ') field.remove_suffix(1);
    for (char c : field) {
      if (c < '0' || c > '7') return std::nullopt;
      value = value << 3 | static_cast<uint64_t>(c - '0');
    }
  }
  if (value > static_cast<uint64_t>(kMaxSize)) return std::nullopt;
  return static_cast<int64_t>(value);
}

// Compares the checksum with the sum of the block's bytes, in which the checksum field counts as
// spaces. Some old programs summed the bytes as signed numbers.
bool ChecksumFits(std::string_view block) {
  const std::optional<int64_t> stored = Number(Raw(block, kChecksum));
  int64_t as_unsigned = 0, as_signed = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    const bool own = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.bytes;
    const char c = own ? ' ' : block[i];
    as_unsigned += static_cast<uint8_t>(c);
    as_signed += static_cast<int8_t>(c);
  }
  return stored.has_value() && (*stored == as_unsigned || *stored == as_signed);
}

int64_t Padded(int64_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

}  // namespace

struct TarReader::Header {
  int64_t position;
  std::string name;
  int64_t size;  // of the contents that follow
  char type;

  bool extends() const { return type == 'x' || type == 'L'; }
  bool regular() const { return type == '0' || type == '7'; }
};

absl::StatusOr<std::optional<TarReader::Header>> TarReader::ReadHeader() {
  ASSIGN_OR_RETURN(std::string_view block, archive_.Peek(kBlockBytes));
  if (block.empty()) return std::nullopt;
  const int64_t position = archive_.position();
  if (block.size() < kBlockBytes) return Damaged(position, "the header is cut off");
  block = block.substr(0, kBlockBytes);
  if (block.find_first_not_of('\0') == std::string_view::npos) return std::nullopt;
  if (!ChecksumFits(block)) return Damaged(position, "there is no tar header");

  Header header = {.position = position,
                   .name = std::string(FieldText(Raw(block, kName))),
                   .size = 0,
                   .type = block[kType]};
  const bool posix = Raw(block, kMagicField) == std::string_view("ustar\0", 6);
  if (const std::string_view prefix = FieldText(Raw(block, kPrefix)); posix && !prefix.empty())
    header.name = absl::StrCat(std::string(prefix), "/", header.name);
  if (header.type == '\0') header.type = header.name.ends_with('/') ? '5' : '0';
  // Links, devices and directories have no contents, whatever their size field contains.
  if (header.type < '1' || header.type > '6') {
    const std::optional<int64_t> size = Number(Raw(block, kSize));
    if (!size.has_value()) return Damaged(position, "the header has no valid size");
    header.size = *size;
  }
  if (header.type == 'S') return Damaged(position, "a sparse file, which is not supported");
  return header;
}

absl::Status TarReader::CheckHolds(const Header& header) const {
  const std::optional<int64_t> left = archive_.left();
  if (!left.has_value() || header.size <= *left) return absl::OkStatus();
  return Damaged(header.position,
                 absl::StrCat("a file of ", header.size, " bytes is cut off: the archive ends at ",
                              archive_.position() + *left));
}

absl::Status TarReader::ReadExtension(const Header& header, Extended& extended) {
  if (header.size > kMaxExtensionBytes)
    return Damaged(header.position,
                   absl::StrCat("an extended header of ", header.size, " bytes is too large"));
  const absl::Status damaged = Damaged(header.position, "the extended header is damaged");
  ASSIGN_OR_RETURN(std::string_view bytes, archive_.Peek(header.size));
  if (static_cast<int64_t>(bytes.size()) < header.size) return damaged;
  bytes = bytes.substr(0, header.size);
  if (header.type == 'L') {
    extended.name = std::string(FieldText(bytes));
    return absl::OkStatus();
  }
  while (!bytes.empty()) {  // "LENGTH KEY=VALUE\n"; LENGTH is the size of the whole line
    const size_t space = bytes.find(' ');
    size_t length;
    if (space == std::string_view::npos ||
        !absl::SimpleAtoi(absl::string_view(bytes.data(), space), &length) || length < space + 3 ||
        length > bytes.size() || bytes[length - 1] != '\n') {
      return damaged;
    }
    const std::string_view record = bytes.substr(space + 1, length - space - 2);
    bytes.remove_prefix(length);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) return damaged;
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") extended.name = std::string(value);
    if (key == "size") {
      int64_t size;
      if (!absl::SimpleAtoi(absl::string_view(value.data(), value.size()), &size) || size < 0 ||
          size > kMaxSize) {
        return damaged;
      }
      extended.size = size;
    }
    if (key.starts_with("GNU.sparse."))
      return Damaged(header.position, "a sparse file, which is not supported");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<TarEntry>> TarReader::NextFile() {
  Extended extended;
  int64_t begin = archive_.position();  // of the headers that belong together
  const auto failed = [&](const absl::Status& status) {
    Seek(begin);
    return status;
  };
  for (;;) {
    absl::StatusOr<std::optional<Header>> read = ReadHeader();
    if (!read.ok()) return failed(read.status());
    if (!read->has_value()) {
      if (!extended.name.has_value() && !extended.size.has_value()) return std::nullopt;
      return failed(Damaged(begin, "the archive ends between the headers of a file"));
    }
    Header& header = **read;
    if (header.regular()) header.size = extended.size.value_or(header.size);
    archive_.Advance(kBlockBytes);
    if (absl::Status holds = CheckHolds(header); !holds.ok()) return failed(holds);
    if (header.regular()) {
      return TarEntry{.name = extended.name.has_value() ? *std::move(extended.name) : header.name,
                      .size = header.size,
                      .position = begin};
    }
    absl::Status passed = header.extends() ? ReadExtension(header, extended) : absl::OkStatus();
    passed.Update(
        PassOver({.name = header.name, .size = header.size, .position = header.position}));
    if (!passed.ok()) return failed(passed);
    // Global headers and long link names contain nothing that is needed. They may be between a file
    // and its extended header.
    if (!header.extends() && header.type != 'g' && header.type != 'K') {
      extended = {};
      begin = archive_.position();
    }
  }
}

absl::Status TarReader::Read(const TarEntry& entry, std::string& contents) {
  contents.clear();
  return Walk(entry, &contents);
}

absl::Status TarReader::PassOver(const TarEntry& entry) {
  if (!archive_.left().has_value()) return Walk(entry, nullptr);
  archive_.Advance(Padded(entry.size));
  return absl::OkStatus();
}

absl::Status TarReader::Walk(const TarEntry& entry, std::string* contents) {
  int64_t left = entry.size;
  while (left > 0) {
    absl::StatusOr<std::string_view> seen = archive_.Peek(1);
    if (!seen.ok() || seen->empty()) {
      Seek(entry.position);
      return seen.ok() ? Damaged(entry.position, "the file is cut off") : seen.status();
    }
    *seen = seen->substr(0, left);
    if (contents != nullptr) contents->append(*seen);
    archive_.Advance(static_cast<int64_t>(seen->size()));
    left -= static_cast<int64_t>(seen->size());
  }
  archive_.Advance(Padded(entry.size) - entry.size);
  return absl::OkStatus();
}

absl::Status TarReader::Damaged(int64_t offset, std::string_view what) const {
  return absl::DataLossError(absl::StrCat(name(), ": at offset ", offset, ": ", std::string(what)));
}

}  // namespace penstock
