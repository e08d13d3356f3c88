// SPDX-License-Identifier: Apache-2.0
// The elements of each partition that a session has received and delivered, and which of these the
// dispatcher does not know of yet. Reason to change: the reports about elements. A value, guarded
// by the session's lock (session/session_parts.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/receiver.h"
#include "dataplane/client/session_state/state.h"
#include "dataplane/dataset/engine/pending_deliveries.h"

namespace penstock::client {

enum class News : uint8_t { kAll, kReceived };  // kReceived: without the deliveries

class ReceiveLedger {
 public:
  // `restored`: the elements delivered before a restore.
  explicit ReceiveLedger(const std::optional<IndicesByPartition>& restored);

  // Returns the partition's receiver for an event. Call this for each event: reports look only at
  // partitions for which it was called.
  protocol::Receiver& Of(PartitionId partition);
  // Records that the dispatcher has named the partition. Partitions are numbered from 1.
  void OnNamed(PartitionId partition);
  // Returns true if the dispatcher has named the partition, or may be about to name it. `partition`
  // comes from a worker and may be any number.
  bool Known(PartitionId partition) const;
  // The next report has the partitions that `welcome` names, and those of which this client has
  // elements. It need not have others. Either the dispatcher knows that the client has none of
  // them, or TakeCompletes() tells it.
  void OnWelcome(const control::Welcome& welcome);

  // Records that Next() returned the element; OnDelivered() will follow.
  void OnHanded(PartitionId partition, Index position);
  void OnDelivered(absl::Span<const PendingDelivery> deliveries);
  int64_t handed() const { return handed_; }  // elements that wait for OnDelivered()
  IndicesByPartition Delivered() const;

  // Call this when something happens that the next report must contain.
  void NoteNews() { news_ = true; }
  bool has_news() const { return news_; }
  // Makes reports due immediately, as a shared job needs them near its end.
  void ReportAtOnce() { at_once_ = true; }
  bool at_once() const { return at_once_; }
  // Returns the changes since the last report, for a report that is sent at once. Looks only at
  // partitions that have changed since then.
  std::vector<control::PartitionReport> TakeNews(News news);
  // Returns true once after each partial Welcome: the report that is sent now completes the reports
  // of all elements.
  bool TakeCompletes() { return std::exchange(completes_, false); }

 private:
  // Has an entry for each partition that a Welcome or a fence has named, or of which an element
  // came. A receiver stays even if it holds nothing, because it refuses elements of earlier
  // placements, which may still arrive. No such elements arrive of a partition without a receiver
  // (docs/protocol.md, "Welcomes").
  std::map<PartitionId, protocol::Receiver> receivers_;
  // Partitions that may have changed since the last report of all news, and since the last report.
  std::set<PartitionId> altered_;
  std::set<PartitionId> altered_since_last_;
  uint64_t highest_ = 0;  // the highest number of a named partition
  int64_t handed_ = 0;
  bool news_ = false;
  bool at_once_ = false;
  bool completes_ = false;
};

}  // namespace penstock::client
