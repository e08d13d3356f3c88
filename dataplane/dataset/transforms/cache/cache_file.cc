// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/cache/cache_file.h"

#include <filesystem>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "control/sync/random.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/sources/formats/record_reader.h"
#include "dataplane/dataset/sources/formats/tfrecord_writer.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr std::string_view kCacheMagic = "PSCH";
constexpr uint64_t kVersion = 1;
constexpr char kPartial[] = ".partial";
constexpr int64_t kFrameBytes = 16;  // of a TFRecord
// The size of the magic and two little-endian uint64.
constexpr int64_t kCacheTailBytes = 4 + 2 * 8;

void AppendFixed(uint64_t value, std::string& to) {
  for (int i = 0; i < 8; ++i) to.push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t FixedAt(std::string_view bytes, size_t at) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i)
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return value;
}

std::string HeadRecord(const CacheFileHead& head) {
  StateWriter writer;
  writer.WriteUnsigned(kVersion);
  writer.WriteUnsigned(head.fingerprint);
  writer.WriteUnsigned(head.key);
  return std::string(kCacheMagic) + writer.bytes();
}

std::string SplitsRecord(const std::vector<AnsweredSplit>& splits) {
  StateWriter writer;
  writer.WriteUnsigned(splits.size());
  for (const AnsweredSplit& answer : splits) {
    writer.WriteInt(answer.provider);
    writer.WriteInt(answer.repetition);
    writer.WriteInt(answer.ordinal);
    writer.WriteInt(answer.split);
  }
  return writer.bytes();
}

absl::StatusOr<std::vector<AnsweredSplit>> ParseSplits(std::string_view record) {
  StateReader reader(record);
  std::vector<AnsweredSplit> splits;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  ASSIGN_OR_RETURN(const uint64_t count, reader.ReadUnsigned());
  for (uint64_t i = 0; i < count; ++i) {
    AnsweredSplit answer;
    ASSIGN_OR_RETURN(const int64_t provider, reader.ReadIntIn(0, INT32_MAX, "a source"));
    answer.provider = static_cast<int>(provider);
    ASSIGN_OR_RETURN(answer.repetition, reader.ReadIntIn(0, kMost, "a repetition"));
    ASSIGN_OR_RETURN(answer.ordinal, reader.ReadIntIn(0, kMost, "an ordinal"));
    ASSIGN_OR_RETURN(answer.split, reader.ReadIntIn(-1, kMost, "a split"));
    splits.push_back(answer);
  }
  RETURN_IF_ERROR(reader.ExpectEnd());
  return splits;
}

// A record, and the position of the next one.
struct Record {
  std::string bytes;
  int64_t end = 0;
};
absl::StatusOr<Record> RecordAt(const std::shared_ptr<File>& file, int64_t offset) {
  const std::unique_ptr<RecordReader> reader = ReadTFRecords(BufferedFile(Shared(file), offset));
  ASSIGN_OR_RETURN(const std::optional<std::string_view> record, reader->Next());
  if (!record.has_value()) return absl::DataLossError("the file ends too early");
  return Record{std::string(*record), reader->position()};
}

absl::Status ReadCacheHead(std::string_view record, CacheFileHead& head) {
  if (record.substr(0, kCacheMagic.size()) != kCacheMagic)
    return absl::DataLossError("its first record is not a cache header");
  StateReader reader(record.substr(kCacheMagic.size()));
  ASSIGN_OR_RETURN(const uint64_t version, reader.ReadUnsigned());
  if (version != kVersion)
    return absl::DataLossError(
        absl::StrCat("it has version ", version, ", this program reads ", kVersion));
  ASSIGN_OR_RETURN(head.fingerprint, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(head.key, reader.ReadUnsigned());
  return reader.ExpectEnd();
}

absl::Status ReadCacheParts(CacheFile& cache) {
  const int64_t tail_at = cache.file->size() - kCacheTailBytes - kFrameBytes;
  if (tail_at < 0) return absl::DataLossError("it is too short");
  ASSIGN_OR_RETURN(const Record head, RecordAt(cache.file, 0));
  RETURN_IF_ERROR(ReadCacheHead(head.bytes, cache.head));
  ASSIGN_OR_RETURN(const Record tail, RecordAt(cache.file, tail_at));
  if (tail.bytes.size() != kCacheTailBytes ||
      tail.bytes.substr(0, kCacheMagic.size()) != kCacheMagic)
    return absl::DataLossError("its last record is not the end of a cache");
  cache.elements = static_cast<int64_t>(FixedAt(tail.bytes, 4));
  cache.elements_begin = head.end;
  cache.elements_end = static_cast<int64_t>(FixedAt(tail.bytes, 12));
  if (cache.elements < 0 || cache.elements_end < cache.elements_begin ||
      cache.elements_end > tail_at)
    return absl::DataLossError("its parts do not match each other");
  ASSIGN_OR_RETURN(const Record splits, RecordAt(cache.file, cache.elements_end));
  if (splits.end != tail_at) return absl::DataLossError("its parts do not match each other");
  ASSIGN_OR_RETURN(cache.splits, ParseSplits(splits.bytes));
  return absl::OkStatus();
}

class SharedFile final : public File {
 public:
  explicit SharedFile(std::shared_ptr<File> file) : file_(std::move(file)) {}
  const std::string& name() const override { return file_->name(); }
  int64_t size() const override { return file_->size(); }
  absl::StatusOr<size_t> ReadAt(int64_t offset, absl::Span<char> into) override {
    return file_->ReadAt(offset, into);
  }
  void WillReadInOrder(int64_t offset) override { file_->WillReadInOrder(offset); }

 private:
  std::shared_ptr<File> file_;
};

// Removes the files of writers that were killed. A writer locks its file as long as it lives, so a
// file without a lock has no writer. On file systems without locks, the files stay.
void RemoveLeftovers(const std::string& name, Disk& disk) {
  const std::string folder = FolderOf(name);
  const std::string prefix = std::filesystem::path(name).filename().string() + ".";
  const absl::StatusOr<std::vector<std::string>> names = disk.List(folder);
  if (!names.ok()) return;  // creating the file will fail too, and return the error
  for (const std::string& found : *names) {
    if (!absl::StartsWith(found, prefix) || !absl::EndsWith(found, kPartial)) continue;
    disk.RemoveUnlocked(absl::StrCat(folder, "/", found)).IgnoreError();
  }
}

}  // namespace

absl::Status DamagedCache(const std::string& name, const absl::Status& why) {
  return absl::FailedPreconditionError(
      absl::StrCat("the cache ", name, " is damaged, or is not a cache: ", why.message(),
                   "; remove the file to have it made again, or give Cache a different path"));
}

std::unique_ptr<File> Shared(std::shared_ptr<File> file) {
  return std::make_unique<SharedFile>(std::move(file));
}

absl::StatusOr<CacheFile> OpenCacheFile(const std::string& name, Files& files) {
  CacheFile cache;
  ASSIGN_OR_RETURN(cache.file, files.Open(name));
  if (absl::Status read = ReadCacheParts(cache); !read.ok()) return DamagedCache(name, read);
  return cache;
}

absl::StatusOr<std::unique_ptr<CacheFileWriter>> CacheFileWriter::Create(const std::string& name,
                                                                         const CacheFileHead& head,
                                                                         Disk& disk) {
  RemoveLeftovers(name, disk);
  ASSIGN_OR_RETURN(std::unique_ptr<DiskFile> file,
                   disk.CreateLocked(absl::StrCat(
                       name, ".", absl::Hex(RandomNumber(), absl::kZeroPad16), kPartial)));
  std::unique_ptr<CacheFileWriter> writer(new CacheFileWriter(name, std::move(file), disk));
  RETURN_IF_ERROR(writer->records_.Write(HeadRecord(head)));
  return writer;
}

CacheFileWriter::~CacheFileWriter() {
  if (!committed_) disk_.Remove(records_.file().path()).IgnoreError();
}

absl::Status CacheFileWriter::Append(std::string_view element) {
  ++elements_;
  return records_.Write(element);
}

absl::Status CacheFileWriter::Commit(const std::vector<AnsweredSplit>& splits) {
  std::string tail(kCacheMagic);
  AppendFixed(static_cast<uint64_t>(elements_), tail);
  AppendFixed(static_cast<uint64_t>(records_.bytes()), tail);
  RETURN_IF_ERROR(records_.Write(SplitsRecord(splits)));
  RETURN_IF_ERROR(records_.Write(tail));
  RETURN_IF_ERROR(records_.Finish());
  RETURN_IF_ERROR(records_.file().Rename(name_));
  committed_ = true;
  ASSIGN_OR_RETURN(const std::unique_ptr<DiskFolder> folder, disk_.OpenFolder(FolderOf(name_)));
  return folder->Sync();
}

}  // namespace penstock
