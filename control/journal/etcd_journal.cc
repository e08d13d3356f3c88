// SPDX-License-Identifier: Apache-2.0
#include "control/journal/etcd_journal.h"

#include <deque>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/journal/etcd_fence.h"
#include "control/journal/etcd_values.h"
#include "control/journal/log_format.h"
#include "control/journal/queued_journal.h"
#include "control/journal/records_proto.h"
#include "control/journal/snapshot_writer.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

template <class Message>
absl::StatusOr<Message> ParseValue(const EtcdKey& key) {
  const auto named = [&](const absl::Status& status) {
    return absl::Status(status.code(),
                        absl::StrCat("journal in etcd: ", key.key, ": ", status.message()));
  };
  if (const absl::Status known = CheckKnown(key.value, *Message::descriptor()); !known.ok()) {
    return named(known);
  }
  Message message;
  if (message.ParseFromString(key.value)) return message;
  return named(absl::DataLossError("the value is damaged"));
}

class EtcdStore final : public RecordStore {
 public:
  EtcdStore(std::shared_ptr<EtcdClient> client, const EtcdJournalOptions& options)
      : fence_(std::move(client), options), keys_{options.prefix} {}

  absl::StatusOr<Recovered> Recover() {
    absl::StatusOr<Recovered> recovered = Read();
    if (recovered.ok()) return recovered;
    // While another process leads, its snapshots delete what this one still reads.
    ASSIGN_OR_RETURN(const std::vector<EtcdKey> leader,
                     fence_.Read({.key = fence_.options().leader_key}));
    if (!leader.empty() && leader.front().create_revision == fence_.options().term) {
      return recovered;
    }
    return absl::AbortedError(
        absl::StrCat("this dispatcher leads no longer: ", recovered.status().message()));
  }

  absl::Status WriteRecords(const std::vector<Recovered::Record>& group) override {
    for (auto record = group.begin(); record != group.end();) {
      const uint64_t first = record->sequence;
      std::string log = LogHeader();
      do {
        AppendRecord(record->sequence, first, record->bytes, log);
        ++record;
      } while (record != group.end() &&
               log.size() + kRecordHeaderBytes + record->bytes.size() <= kMostValueBytes);
      RETURN_IF_ERROR(WriteGroup(first, std::prev(record)->sequence, log));
    }
    return absl::OkStatus();
  }

  // One transaction replaces the snapshot, and deletes the groups and the chunks before it. The
  // next snapshot deletes the chunks of an unfinished one.
  // No release that needs joined pieces reads a journal in etcd, so none are joined.
  absl::Status WriteSnapshot(uint64_t sequence, SnapshotChanges changes) override {
    Merge(std::move(changes), pieces_);
    std::erase_if(pieces_.pieces, [](const auto& piece) { return !piece.second.has_value(); });
    const absl::Status stored = StoreSnapshot(sequence);
    if (!absl::IsResourceExhausted(stored)) return stored;
    ReportFailedSnapshot(Annotate(stored, "while writing a snapshot"));
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Recovered> Read() {
    Recovered recovered;
    before_ = {keys_.Snapshot(), EtcdCompare::Number::kModRevision, 0};
    ASSIGN_OR_RETURN(const std::vector<EtcdKey> snapshots, fence_.Read({.key = keys_.Snapshot()}));
    for (const EtcdKey& key : snapshots) {  // none or one
      ASSIGN_OR_RETURN(const wire::EtcdSnapshot snapshot, ParseValue<wire::EtcdSnapshot>(key));
      recovered.snapshot_sequence = snapshot.sequence();
      ASSIGN_OR_RETURN(
          std::vector<Recovered::Record> pieces,
          LoadLog(key.key, 1, keys_.SnapshotChunks(snapshot.sequence()), snapshot.pieces()));
      for (Recovered::Record& piece : pieces) recovered.snapshot.push_back(std::move(piece.bytes));
      snapshot_revision_ = key.mod_revision;
      before_ = {key.key, EtcdCompare::Number::kModRevision, key.mod_revision};
    }
    ASSIGN_OR_RETURN(const std::vector<EtcdKey> groups,
                     fence_.Read({.key = keys_.Log(0), .end = keys_.Log(UINT64_MAX)}));
    for (const EtcdKey& key : groups) RETURN_IF_ERROR(ReadGroup(key, recovered));
    return recovered;
  }

  absl::Status ReadGroup(const EtcdKey& key, Recovered& recovered) {
    // The snapshot may contain the first records of the first group.
    uint64_t first = recovered.last_sequence() + 1;
    if (groups_.empty() && key.key < keys_.Log(first)) {
      ASSIGN_OR_RETURN(first, keys_.FirstOf(key.key));
    }
    if (key.key != keys_.Log(first)) {
      return absl::DataLossError(absl::StrCat("journal in etcd: ", key.key,
                                              " does not follow record ", first - 1,
                                              "; the records between them are missing"));
    }
    ASSIGN_OR_RETURN(const wire::EtcdGroup group, ParseValue<wire::EtcdGroup>(key));
    ASSIGN_OR_RETURN(std::vector<Recovered::Record> records,
                     LoadLog(key.key, first, keys_.LogChunks(first), group.log()));
    for (Recovered::Record& record : records) {
      if (record.sequence > recovered.snapshot_sequence)
        recovered.records.push_back(std::move(record));
    }
    groups_.push_back(first);
    written_ = recovered.last_sequence();
    before_ = {key.key, EtcdCompare::Number::kModRevision, key.mod_revision};
    return absl::OkStatus();
  }

  // Reads the records of the log in `stored`, which begins with record `first`.
  absl::StatusOr<std::vector<Recovered::Record>> LoadLog(const std::string& key, uint64_t first,
                                                         const std::string& chunks,
                                                         const wire::StoredBytes& stored) {
    ASSIGN_OR_RETURN(const std::string log, LoadBytes(fence_, chunks, stored));
    ASSIGN_OR_RETURN(ParsedLog parsed, ParseLog(log, first, std::nullopt, key));
    if (!parsed.records.empty() && parsed.valid_bytes == log.size())
      return std::move(parsed.records);
    return absl::DataLossError(absl::StrCat("journal in etcd: ", key, " is damaged: ", parsed.cut));
  }

  absl::Status WriteGroup(uint64_t first, uint64_t last, const std::string& log) {
    wire::EtcdGroup group;
    group.set_term(fence_.options().term);
    RETURN_IF_ERROR(StoreBytes(fence_, keys_.LogChunks(first), log, group.mutable_log()));
    const std::string key = keys_.Log(first);
    ASSIGN_OR_RETURN(const int64_t revision,
                     fence_.Put({.key = key, .value = group.SerializeAsString()},
                                {before_, {key, EtcdCompare::Number::kVersion, 0}}));
    before_ = {key, EtcdCompare::Number::kModRevision, revision};
    groups_.push_back(first);
    written_ = last;
    return absl::OkStatus();
  }

  absl::Status StoreSnapshot(uint64_t sequence) {
    wire::EtcdSnapshot snapshot;
    snapshot.set_term(fence_.options().term);
    snapshot.set_sequence(sequence);
    std::string log = LogHeader();
    uint64_t number = 0;
    for (const auto& [key, piece] : pieces_.pieces) AppendRecord(++number, 1, *piece, log);
    RETURN_IF_ERROR(
        StoreBytes(fence_, keys_.SnapshotChunks(sequence), log, snapshot.mutable_pieces()));
    // The groups that stay: those with a record after the snapshot.
    std::deque<uint64_t> kept = groups_;
    while (!kept.empty() && (kept.size() > 1 ? kept[1] - 1 : written_) <= sequence)
      kept.pop_front();
    const uint64_t stays = kept.empty() ? sequence + 1 : kept.front();
    const EtcdKeys& keys = keys_;
    ASSIGN_OR_RETURN(
        const int64_t revision,
        fence_.Put(
            {.key = keys.Snapshot(), .value = snapshot.SerializeAsString()},
            {{keys.Snapshot(), EtcdCompare::Number::kModRevision, snapshot_revision_}},
            {EtcdDelete{.key = keys.Log(0), .end = keys.Log(stays)},
             EtcdDelete{.key = keys.LogChunks(0), .end = keys.LogChunks(stays)},
             EtcdDelete{.key = keys.SnapshotChunks(0), .end = keys.SnapshotChunks(sequence)}}));
    snapshot_revision_ = revision;
    groups_ = std::move(kept);
    if (groups_.empty()) before_ = {keys.Snapshot(), EtcdCompare::Number::kModRevision, revision};
    fence_.Compact(revision);
    return absl::OkStatus();
  }

  EtcdFence fence_;
  const EtcdKeys keys_;
  SnapshotChanges pieces_;         // the whole snapshot, with the changes of one that failed
  int64_t snapshot_revision_ = 0;  // 0: there is none
  std::deque<uint64_t> groups_;    // the first records of the groups in etcd
  uint64_t written_ = 0;           // the last record in etcd, if there are groups
  // Holds while the newest group, or the snapshot if there is none after it, is as this process
  // wrote or read it.
  EtcdCompare before_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> OpenEtcdJournal(std::shared_ptr<EtcdClient> client,
                                                         const EtcdJournalOptions& options) {
  auto store = std::make_unique<EtcdStore>(std::move(client), options);
  ASSIGN_OR_RETURN(Recovered recovered, store->Recover());
  return MakeQueuedJournal(absl::StrCat("etcd:", options.prefix), std::move(recovered),
                           std::move(store));
}

}  // namespace penstock::control
