// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/collective/rank_messages.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "include/status_macros.h"

namespace penstock::replica {
namespace {

void Write(StateWriter& writer, const absl::Status& status) {
  writer.WriteInt(static_cast<int>(status.code()));
  if (!status.ok()) writer.WriteString({status.message().data(), status.message().size()});
}

void Write(StateWriter& writer, const std::vector<int64_t>& values) {
  writer.WriteUnsigned(values.size());
  for (const int64_t value : values) writer.WriteInt(value);
}

void Write(StateWriter& writer, const std::vector<std::string>& values) {
  writer.WriteUnsigned(values.size());
  for (const std::string& value : values) writer.WriteString(value);
}

void Write(StateWriter& writer, const RankHello& hello) {
  writer.WriteUnsigned(hello.version);
  writer.WriteString(hello.launch);
  writer.WriteInt(hello.rank);
  writer.WriteInt(hello.ranks);
}

void Write(StateWriter& writer, const RankWelcome& welcome) {
  Write(writer, welcome.status);
}

void Write(StateWriter& writer, const RankCalls& calls) {
  writer.WriteUnsigned(calls.communicator);
  writer.WriteInt(static_cast<int>(calls.call.kind));
  writer.WriteInt(static_cast<int>(calls.call.op));
  Write(writer, calls.call.values);
  writer.WriteString(calls.call.bytes);
  writer.WriteInt(calls.call.color);
}

void Write(StateWriter& writer, const RankEnds& ends) {
  writer.WriteUnsigned(ends.communicator);
  Write(writer, ends.why);
}

void Write(StateWriter&, const RankLeaves&) {}

void Write(StateWriter& writer, const RankEventMessage& event) {
  writer.WriteUnsigned(event.communicator);
  Write(writer, event.end);
  if (!event.end.ok()) return;
  Write(writer, event.result.values);
  Write(writer, event.result.gathered);
  writer.WriteUnsigned(event.result.communicator);
  writer.WriteInt(event.result.rank);
  writer.WriteInt(event.result.size);
}

absl::Status Read(StateReader& reader, absl::Status& status) {
  ASSIGN_OR_RETURN(const int64_t code, reader.ReadIntIn(0, 16, "a status"));
  status = absl::OkStatus();
  if (code == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string_view text, reader.ReadString());
  status = absl::Status(static_cast<absl::StatusCode>(code), std::string(text));
  return absl::OkStatus();
}

// Reads the number of items that follow, each of at least one byte.
absl::StatusOr<uint64_t> ReadCount(StateReader& reader) {
  ASSIGN_OR_RETURN(const uint64_t count, reader.ReadUnsigned());
  if (count > reader.rest().size())
    return absl::DataLossError("a count is larger than the number of remaining bytes");
  return count;
}

absl::Status Read(StateReader& reader, std::vector<int64_t>& values) {
  ASSIGN_OR_RETURN(const uint64_t count, ReadCount(reader));
  values.resize(count);
  for (int64_t& value : values) {
    ASSIGN_OR_RETURN(value, reader.ReadInt());
  }
  return absl::OkStatus();
}

absl::Status Read(StateReader& reader, std::vector<std::string>& values) {
  ASSIGN_OR_RETURN(const uint64_t count, ReadCount(reader));
  values.resize(count);
  for (std::string& value : values) {
    ASSIGN_OR_RETURN(value, reader.ReadString());
  }
  return absl::OkStatus();
}

absl::Status Read(StateReader& reader, RankHello& hello) {
  ASSIGN_OR_RETURN(hello.version, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(hello.launch, reader.ReadString());
  ASSIGN_OR_RETURN(hello.rank, reader.ReadInt());
  ASSIGN_OR_RETURN(hello.ranks, reader.ReadInt());
  return absl::OkStatus();
}

absl::Status Read(StateReader& reader, RankWelcome& welcome) {
  return Read(reader, welcome.status);
}

absl::Status Read(StateReader& reader, RankCalls& calls) {
  ASSIGN_OR_RETURN(calls.communicator, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(const int64_t kind, reader.ReadIntIn(0, 2, "a call's kind"));
  calls.call.kind = static_cast<RankCall::Kind>(kind);
  ASSIGN_OR_RETURN(const int64_t op, reader.ReadIntIn(0, 2, "a reduction"));
  calls.call.op = static_cast<CollectiveOp>(op);
  RETURN_IF_ERROR(Read(reader, calls.call.values));
  ASSIGN_OR_RETURN(calls.call.bytes, reader.ReadString());
  ASSIGN_OR_RETURN(calls.call.color, reader.ReadInt());
  return absl::OkStatus();
}

absl::Status Read(StateReader& reader, RankEnds& ends) {
  ASSIGN_OR_RETURN(ends.communicator, reader.ReadUnsigned());
  return Read(reader, ends.why);
}

absl::Status Read(StateReader&, RankLeaves&) {
  return absl::OkStatus();
}

absl::Status Read(StateReader& reader, RankEventMessage& event) {
  ASSIGN_OR_RETURN(event.communicator, reader.ReadUnsigned());
  RETURN_IF_ERROR(Read(reader, event.end));
  if (!event.end.ok()) return absl::OkStatus();
  RETURN_IF_ERROR(Read(reader, event.result.values));
  RETURN_IF_ERROR(Read(reader, event.result.gathered));
  ASSIGN_OR_RETURN(event.result.communicator, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(event.result.rank, reader.ReadInt());
  ASSIGN_OR_RETURN(event.result.size, reader.ReadInt());
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<RankMessage> ReadOne(StateReader& reader) {
  T message;
  RETURN_IF_ERROR(Read(reader, message));
  RETURN_IF_ERROR(reader.ExpectEnd());
  return RankMessage(std::move(message));
}

}  // namespace

std::string ToBytes(const RankMessage& message) {
  StateWriter writer;
  writer.WriteUnsigned(message.index());
  std::visit([&writer](const auto& one) { Write(writer, one); }, message);
  return std::move(writer).Take();
}

absl::StatusOr<RankMessage> RankMessageOf(std::string_view bytes) {
  StateReader reader(bytes);
  ASSIGN_OR_RETURN(const uint64_t kind, reader.ReadUnsigned());
  switch (kind) {
    case 0:
      return ReadOne<RankHello>(reader);
    case 1:
      return ReadOne<RankWelcome>(reader);
    case 2:
      return ReadOne<RankCalls>(reader);
    case 3:
      return ReadOne<RankEnds>(reader);
    case 4:
      return ReadOne<RankLeaves>(reader);
    case 5:
      return ReadOne<RankEventMessage>(reader);
    default:
      return absl::DataLossError(
          absl::StrCat("a message between ranks has the unknown kind ", kind));
  }
}

}  // namespace penstock::replica
