// SPDX-License-Identifier: Apache-2.0
// Saved readings and restored jobs to and from their wire form.
#include "control/proto/reading_proto.h"

#include <algorithm>

namespace penstock::control {

using Positions = google::protobuf::RepeatedPtrField<wire::SavedRepetition::Position>;

static void WritePositions(const std::vector<SavedRepetition::Position>& from, Positions* to) {
  for (const SavedRepetition::Position& position : from) {
    wire::SavedRepetition::Position* wire = to->Add();
    wire->set_index(position.index);
    wire->set_bytes(position.bytes);
  }
}

static absl::StatusOr<std::vector<SavedRepetition::Position>> ReadPositions(const Positions& from) {
  std::vector<SavedRepetition::Position> to;
  for (const wire::SavedRepetition::Position& wire : from) {
    if (wire.index() < 0) return absl::InvalidArgumentError("a bookmark at a negative index");
    to.push_back({wire.index(), wire.bytes()});
  }
  return to;
}

void ToWire(const SavedRepetition& from, wire::SavedRepetition* to) {
  to->set_repetition(from.repetition);
  to->set_version(from.version);
  to->set_finished(from.finished);
  if (from.division.count > 0) ToWire(from.division, to->mutable_division());
  to->set_num_consumers(from.num_consumers);
  for (const int64_t lead : from.leads) to->add_leads(lead);
  if (from.positions) ToWire(*from.positions, to->mutable_positions());
  for (const SavedRepetition::Partition& partition : from.partitions) {
    wire::SavedRepetition::Partition* wire = to->add_partitions();
    wire->set_committed_below(partition.committed_below);
    ListToWire(partition.given, wire->mutable_given());
    WritePositions(partition.bookmarks, wire->mutable_bookmarks());
  }
  PassesToWire(from.passes_over, to->mutable_passes_over());
  for (const SavedRepetition::Reader& reader : from.readers) {
    wire::SavedRepetition::Reader* wire = to->add_readers();
    wire->set_client(reader.client.value());
    wire->set_gone(reader.gone);
    wire->set_committed_count(reader.committed_count);
    wire->set_consumer(reader.consumer + 1);
    ListToWire(reader.committed, wire->mutable_committed());
  }
}

absl::StatusOr<SavedRepetition> FromWire(const wire::SavedRepetition& from) {
  SavedRepetition to{.repetition = from.repetition(),
                     .version = from.version(),
                     .finished = from.finished(),
                     .num_consumers = from.num_consumers(),
                     .positions = std::nullopt,
                     .leads = {from.leads().begin(), from.leads().end()}};
  if (from.has_positions()) {
    ASSIGN_OR_RETURN(to.positions, FromWire(from.positions()));
  }
  ASSIGN_OR_RETURN(to.division, FromWire(from.division()));
  for (const wire::SavedRepetition::Partition& wire : from.partitions()) {
    SavedRepetition::Partition& partition = to.partitions.emplace_back();
    if (wire.committed_below() < 0) return absl::InvalidArgumentError("a negative index");
    partition.committed_below = wire.committed_below();
    ASSIGN_OR_RETURN(partition.given, ListFromWire(wire.given()));
    ASSIGN_OR_RETURN(partition.bookmarks, ReadPositions(wire.bookmarks()));
  }
  ASSIGN_OR_RETURN(to.passes_over, PassesFromWire(from.passes_over()));
  for (const wire::SavedRepetition::Reader& wire : from.readers()) {
    SavedRepetition::Reader& reader = to.readers.emplace_back();
    reader.client = ClientId(wire.client());
    reader.gone = wire.gone();
    reader.committed_count = wire.committed_count();
    reader.consumer = std::max<int64_t>(wire.consumer(), 0) - 1;
    ASSIGN_OR_RETURN(reader.committed, ListFromWire(wire.committed()));
  }
  return to;
}

static void ToWire(const Restoration& from, wire::Restoration* to) {
  to->set_name(from.name);
  for (const Restoration::Repetition& repetition : from.repetitions) {
    wire::Restoration::Repetition* wire = to->add_repetitions();
    wire->set_number(repetition.number);
    wire->set_finished(repetition.finished);
    if (repetition.division.count > 0) ToWire(repetition.division, wire->mutable_division());
    PassesToWire(repetition.passes_over, wire->mutable_passes_over());
    for (const Restoration::Partition& partition : repetition.partitions) {
      wire::Restoration::Partition* of = wire->add_partitions();
      ToWire(partition.committed, of->mutable_committed());
      ListToWire(partition.given, of->mutable_given());
      WritePositions(partition.bookmarks, of->mutable_bookmarks());
      of->set_lead(partition.lead);
    }
  }
}

static absl::StatusOr<Restoration> FromWire(const wire::Restoration& from) {
  Restoration to{.name = from.name()};
  for (const wire::Restoration::Repetition& wire : from.repetitions()) {
    Restoration::Repetition& repetition = to.repetitions.emplace_back();
    repetition.number = wire.number();
    repetition.finished = wire.finished();
    ASSIGN_OR_RETURN(repetition.division, FromWire(wire.division()));
    ASSIGN_OR_RETURN(repetition.passes_over, PassesFromWire(wire.passes_over()));
    for (const wire::Restoration::Partition& of : wire.partitions()) {
      Restoration::Partition& partition = repetition.partitions.emplace_back();
      ASSIGN_OR_RETURN(partition.committed, FromWire(of.committed()));
      ASSIGN_OR_RETURN(partition.given, ListFromWire(of.given()));
      ASSIGN_OR_RETURN(partition.bookmarks, ReadPositions(of.bookmarks()));
      if (of.lead() < 0) return absl::InvalidArgumentError("a negative number of elements");
      partition.lead = of.lead();
    }
  }
  return to;
}

void ToWire(const RestoreJobRequest& from, wire::RestoreJobRequest* to) {
  ToWire(from.job, to->mutable_job());
  ToWire(from.restoration, to->mutable_restoration());
}

absl::StatusOr<RestoreJobRequest> FromWire(const wire::RestoreJobRequest& from) {
  RestoreJobRequest to;
  ASSIGN_OR_RETURN(to.job, FromWire(from.job()));
  ASSIGN_OR_RETURN(to.restoration, FromWire(from.restoration()));
  return to;
}

}  // namespace penstock::control
