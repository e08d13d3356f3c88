// SPDX-License-Identifier: Apache-2.0
#include "control/journal/records_proto.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/state/format.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/wire_format_lite.h"
#include "include/status_macros.h"

namespace penstock::control {

namespace {

using google::protobuf::internal::WireFormatLite;

// The tags of the fields of a ReceivedSetsByPartition.
constexpr uint32_t kTagOfSet = 0x0A;
constexpr uint32_t kTagOfPartitions = 0x12;

constexpr char kStartNewer[] =
    "start the newer release that wrote it: after `penstock upgrade finalise`, earlier releases "
    "cannot read the journal";

// Parses the bytes without Protobuf's reflection, which takes several times as long.
absl::Status CheckKnown(google::protobuf::io::CodedInputStream& bytes,
                        const google::protobuf::Descriptor& type) {
  while (const uint32_t tag = bytes.ReadTag()) {
    const int number = WireFormatLite::GetTagFieldNumber(tag);
    const google::protobuf::FieldDescriptor* field = type.FindFieldByNumber(number);
    if (field == nullptr && !type.IsReservedNumber(number)) {
      return absl::FailedPreconditionError(absl::StrCat("this release does not know field ", number,
                                                        " of ", type.name(), "; ", kStartNewer));
    }
    int size = 0;
    if (field == nullptr || field->message_type() == nullptr) {
      if (!WireFormatLite::SkipField(&bytes, tag))
        return absl::DataLossError("its bytes cannot be read");
    } else if (!bytes.ReadVarintSizeAsInt(&size)) {
      return absl::DataLossError("its bytes cannot be read");
    } else {
      const auto outside = bytes.PushLimit(size);
      RETURN_IF_ERROR(CheckKnown(bytes, *field->message_type()));
      bytes.PopLimit(outside);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckKnown(std::string_view bytes, const google::protobuf::Descriptor& type) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  return CheckKnown(stream, type);
}

namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

// Writes the partitions of the sets.
void WritePartitions(const protocol::ReceivedSets& sets, CodedOutputStream& to) {
  size_t size = 0;
  for (const auto& [partition, set] : sets)
    size += CodedOutputStream::VarintSize64(partition.value());
  to.WriteTag(kTagOfPartitions);
  to.WriteVarint32(static_cast<uint32_t>(size));
  for (const auto& [partition, set] : sets) to.WriteVarint64(partition.value());
}

void WriteEmptySets(uint64_t count, CodedOutputStream& to) {
  for (; count > 0; --count) {
    to.WriteTag(kTagOfSet);
    to.WriteVarint32(0);
  }
}

// Reads partitions up to the limit of `from`.
bool ReadPartitions(CodedInputStream& from, std::vector<PartitionId>& partitions) {
  while (from.BytesUntilLimit() > 0) {
    uint64_t partition = 0;
    if (!from.ReadVarint64(&partition)) return false;
    if (partition <= (partitions.empty() ? 0 : partitions.back().value())) return false;
    partitions.emplace_back(partition);
  }
  return true;
}

}  // namespace

std::string BytesOf(const protocol::ReceivedSets& sets, uint32_t format) {
  std::string bytes;
  if (sets.empty()) return bytes;
  google::protobuf::io::StringOutputStream to_bytes(&bytes);
  CodedOutputStream to(&to_bytes);
  const bool sparse = format >= kSparseSetsFormat;
  if (sparse) WritePartitions(sets, to);
  wire::IndexSet message;
  uint64_t next = 1;
  for (const auto& [partition, set] : sets) {
    if (!sparse) WriteEmptySets(partition.value() - next, to);
    message.Clear();
    Encoder().Put(set, &message);
    to.WriteTag(kTagOfSet);
    to.WriteVarint32(static_cast<uint32_t>(message.ByteSizeLong()));
    message.SerializeToCodedStream(&to);
    next = partition.value() + 1;
  }
  to.Trim();
  return bytes;
}

absl::Status ReadFrom(const std::string& bytes, protocol::ReceivedSets& sets) {
  const auto unreadable = [] {
    return absl::InvalidArgumentError("the sets of a reader cannot be read");
  };
  CodedInputStream from(reinterpret_cast<const uint8_t*>(bytes.data()),
                        static_cast<int>(bytes.size()));
  wire::IndexSet message;
  std::string its;
  std::vector<PartitionId> partitions;
  size_t read = 0;  // sets
  while (const uint32_t tag = from.ReadTag()) {
    if (tag != kTagOfSet && tag != kTagOfPartitions) {
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      return absl::FailedPreconditionError(absl::StrCat("this release does not know field ", number,
                                                        " of ReceivedSetsByPartition; ",
                                                        kStartNewer));
    }
    uint32_t size = 0;
    if (!from.ReadVarint32(&size) || size > bytes.size()) return unreadable();
    if (tag == kTagOfPartitions) {
      const bool is_whole = size > 0 && size <= bytes.size() - from.CurrentPosition();
      if (!is_whole || read > 0 || !partitions.empty()) return unreadable();
      const auto outside = from.PushLimit(static_cast<int>(size));
      if (!ReadPartitions(from, partitions)) return unreadable();
      from.PopLimit(outside);
      continue;
    }
    ++read;
    if (!from.ReadString(&its, static_cast<int>(size))) return unreadable();
    if (!partitions.empty() && read > partitions.size()) return unreadable();
    if (size == 0) continue;
    RETURN_IF_ERROR(CheckKnown(its, *wire::IndexSet::descriptor()));
    if (!message.ParseFromString(its)) return unreadable();
    ASSIGN_OR_RETURN(const IndexSet set, Decode<IndexSet>(message));
    sets.Add(partitions.empty() ? PartitionId(read) : partitions[read - 1], set);
  }
  if (!from.ConsumedEntireMessage() || (!partitions.empty() && read != partitions.size()))
    return unreadable();
  return absl::OkStatus();
}

absl::Status CheckFormat(uint32_t format) {
  if (format <= kNewestFormat) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the journal has format ", format,
                                                    ", but this release knows formats up to ",
                                                    kNewestFormat, "; ", kStartNewer));
}

void WriteJob(const JobRecord& from, const State& state, wire::Job* to) {
  Encoder coder;
  coder.Put(from, to);
  to->set_dataset_id(from.dataset->id);
  to->set_dataset_fingerprint(from.dataset->summary.fingerprint);
  const std::shared_ptr<const DatasetRecord> known = state.FindDataset(from.dataset->id);
  if (known != from.dataset && (known == nullptr || *known != *from.dataset)) {
    coder.Put(from.dataset, to->mutable_dataset());
  }
}

absl::StatusOr<JobRecord> ReadJob(const wire::Job& from, const State& state) {
  ASSIGN_OR_RETURN(JobRecord to, Decode<JobRecord>(from));
  if (from.has_dataset()) {
    ASSIGN_OR_RETURN(to.dataset, Decode<std::shared_ptr<const DatasetRecord>>(from.dataset()));
    const auto same = state.FindDataset(to.dataset->id, to.dataset->edition);
    if (same != nullptr && *same == *to.dataset) to.dataset = same;  // jobs share a definition
    return to;
  }
  to.dataset = state.FindDataset(from.dataset_id());
  if (to.dataset == nullptr || to.dataset->summary.fingerprint != from.dataset_fingerprint()) {
    return absl::DataLossError(
        absl::StrCat("job ", from.name(), " reads dataset ", from.dataset_id(),
                     ", but the journal does not contain the definition that it reads"));
  }
  return to;
}

}  // namespace penstock::control
