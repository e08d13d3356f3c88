// SPDX-License-Identifier: Apache-2.0
#include "control/journal/records_proto.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace penstock::control {

namespace {

using google::protobuf::internal::WireFormatLite;

// Walks over the bytes, because Protobuf's reflection takes several times as long.
absl::Status CheckKnown(google::protobuf::io::CodedInputStream& bytes,
                        const google::protobuf::Descriptor& type) {
  while (const uint32_t tag = bytes.ReadTag()) {
    const int number = WireFormatLite::GetTagFieldNumber(tag);
    const google::protobuf::FieldDescriptor* field = type.FindFieldByNumber(number);
    if (field == nullptr && !type.IsReservedNumber(number)) {
      return absl::FailedPreconditionError(absl::StrCat("this release does not know field ", number,
                                                        " of ", type.name(),
                                                        "; start the newer release that wrote it"));
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

void WriteLife(const BegunLife& from, wire::BegunLife* to) {
  ToWire(from.life, to->mutable_life());
  to->set_begins(from.begins);
  to->set_lease_ns(absl::ToInt64Nanoseconds(from.lease));
}

BegunLife ReadLife(const wire::BegunLife& from) {
  return {FromWire(from.life()), from.begins(), absl::Nanoseconds(from.lease_ns())};
}

void WriteReceivedSets(const protocol::ReceivedSets& from, wire::ReceivedSetsByPartition* to) {
  for (const IndexSet& set : from) ToWire(set, to->add_sets());
}

absl::StatusOr<protocol::ReceivedSets> ReadReceivedSets(const wire::ReceivedSetsByPartition& from) {
  protocol::ReceivedSets to;
  for (const wire::IndexSet& set : from.sets()) {
    ASSIGN_OR_RETURN(to.emplace_back(), FromWire(set));
  }
  return to;
}

void WriteBookmark(const protocol::Bookmark& from, wire::SavedPosition* to) {
  to->set_index(from.index);
  to->set_bytes(from.bytes);
}

protocol::Bookmark ReadBookmark(const wire::SavedPosition& from) {
  return {from.index(), from.bytes()};
}

void WriteMarked(const MarkedBookmark& from, wire::MarkedBookmark* to) {
  to->set_index(from.index);
  ListToWire(from.marks, to->mutable_marks());
}

MarkedBookmark ReadMarked(const wire::MarkedBookmark& from) {
  return {from.index(), ListFromWire(from.marks())};
}

void WriteDataset(const DatasetRecord& from, wire::Dataset* to) {
  to->set_id(from.id);
  to->set_definition(from.definition);
  ToWire(from.summary, to->mutable_summary());
  to->set_edition(from.edition);
}

absl::StatusOr<DatasetRecord> ReadDataset(const wire::Dataset& from) {
  ASSIGN_OR_RETURN(DatasetSummary summary, FromWire(from.summary()));
  const uint64_t edition = from.edition() != 0 ? from.edition() : summary.fingerprint;
  return DatasetRecord{from.id(), from.definition(), std::move(summary), edition};
}

void WriteJob(const JobRecord& from, const State& state, wire::Job* to) {
  to->set_id(from.id.value());
  to->set_name(from.name);
  to->set_run_id(from.run_id);
  to->set_anonymous(from.anonymous);
  to->set_dataset_id(from.dataset->id);
  to->set_dataset_fingerprint(from.dataset->summary.fingerprint);
  const std::shared_ptr<const DatasetRecord> known = state.FindDataset(from.dataset->id);
  if (known != from.dataset && (known == nullptr || *known != *from.dataset)) {
    WriteDataset(*from.dataset, to->mutable_dataset());
  }
  ToWire(from.terms, to->mutable_terms());
  to->set_seed(from.seed);
  to->set_token(from.token);
  to->set_cancelled(from.cancelled);
}

absl::StatusOr<JobRecord> ReadJob(const wire::Job& from, const State& state) {
  JobRecord to{.id = JobId(from.id()),
               .name = from.name(),
               .run_id = from.run_id(),
               .anonymous = from.anonymous(),
               .seed = from.seed(),
               .token = from.token(),
               .cancelled = from.cancelled()};
  ASSIGN_OR_RETURN(to.terms, FromWire(from.terms()));
  if (from.has_dataset()) {
    ASSIGN_OR_RETURN(DatasetRecord dataset, ReadDataset(from.dataset()));
    to.dataset = std::make_shared<const DatasetRecord>(std::move(dataset));
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

void WriteWorker(const WorkerRecord& from, wire::Worker* to) {
  to->set_id(from.id.value());
  to->set_address(from.address);
  ListToWire(from.offers, to->mutable_offers());
  for (const std::string& tag : from.tags) to->add_tags(tag);
  to->set_permits(from.permits);
  to->set_draining(from.draining);
  if (from.place >= 0) to->set_place(from.place);
  to->set_process(from.process.value());
}

WorkerRecord ReadWorker(const wire::Worker& from) {
  return {.id = WorkerId(from.id()),
          .address = from.address(),
          .offers = ListFromWire(from.offers()),
          .tags = {from.tags().begin(), from.tags().end()},
          .permits = from.permits(),
          .draining = from.draining(),
          .place = from.has_place() ? from.place() : -1,
          .process = Incarnation(from.process())};
}

void WriteAnswer(const AnswerRecord& from, wire::Answered* to) {
  ToWire(from.request, to->mutable_request());
  if (const auto* dataset = std::get_if<RegisterDatasetAnswer>(&from.answer)) {
    ToWire(*dataset, to->mutable_dataset());
  } else {
    ToWire(std::get<JobAnswer>(from.answer), to->mutable_job());
  }
}

absl::StatusOr<AnswerRecord> ReadAnswer(const wire::Answered& from) {
  AnswerRecord to{.request = FromWire(from.request()), .answer = {}};
  if (from.has_dataset()) {
    to.answer = FromWire(from.dataset());
  } else if (from.has_job()) {
    to.answer = FromWire(from.job());
  } else {
    return absl::DataLossError("unknown kind of answer");
  }
  return to;
}

absl::StatusOr<protocol::ReaderStatus> ReadReaderStatus(uint32_t from) {
  if (from > static_cast<uint32_t>(protocol::ReaderStatus::kExpired)) {
    return absl::DataLossError(absl::StrCat("unknown reader status ", from));
  }
  return static_cast<protocol::ReaderStatus>(from);
}

void WriteRoundEvent(const protocol::RoundEvent& from, wire::IterationAltered::RoundEvent* to) {
  to->set_round(from.round);
  to->set_kind(static_cast<uint32_t>(from.kind));
  to->set_partition(from.partition.value());
}

absl::StatusOr<protocol::RoundEvent> ReadRoundEvent(
    const wire::IterationAltered::RoundEvent& from) {
  if (from.kind() > static_cast<uint32_t>(protocol::RoundEvent::Kind::kLeaves)) {
    return absl::DataLossError(absl::StrCat("unknown kind ", from.kind(), " of round change"));
  }
  return protocol::RoundEvent{from.round(), static_cast<protocol::RoundEvent::Kind>(from.kind()),
                              PartitionId(from.partition())};
}

}  // namespace penstock::control
