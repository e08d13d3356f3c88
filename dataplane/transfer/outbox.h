// SPDX-License-Identifier: Apache-2.0
// The worker's end of a link, as far as all networks have it in common: the
// credits the client gave, and what is to be sent to it, in order.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/outgoing.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer {

// How long a frame waits for company.
inline constexpr std::chrono::milliseconds kLongestFilling(1);

// Not thread-safe.
class Outbox {
 public:
  // Frames take slots of `frame_bytes` from `frames`, which outlives this.
  Outbox(Pool& frames, size_t frame_bytes) : sent_(frames, frame_bytes) {}

  int64_t credits() const { return credits_; }
  // Against one credit. FailedPrecondition without one; it then stays the caller's.
  absl::Status Send(Sent&& sent);
  // A frame waits for company; frame() changes with each.
  bool filling() const { return sent_.filling(); }
  uint64_t frame() const { return sent_.frame(); }
  // Lets go of that.
  void Seal();
  // The answer to the hello.
  void Welcome() { letters_.Push({Letter::kWelcome}); }
  // What the client says, and what has landed of what was sent, which is put behind `landed`.
  // Whoever lets go of the lock around this then calls Tell(). InvalidArgument for what no
  // client says.
  absl::Status Apply(const Update& update, std::vector<Acknowledged>& landed);

  // One message.
  struct Next {
    std::string text;  // all of it; if empty, it has
    MessageType type = MessageType::kElement;
    absl::Span<const std::byte> bytes;  // this body,
    Loan loan;                          // which this keeps
    int64_t count = 0;                  // of elements and errors in it
  };
  bool empty() const { return letters_.empty(); }
  size_t size() const { return letters_.size(); }
  // REQUIRES: not empty().
  Next Take();

  // All that has not landed, in the order of sending. What comes from frames is shared.
  std::vector<Sent> TakeUnconfirmed() { return sent_.TakeUnconfirmed(); }

 private:
  struct Letter {
    enum Kind { kWelcome, kParcel, kRecalled } kind = kWelcome;
    int64_t count = 0;
  };

  void PostParcels();

  int64_t credits_ = 0;
  Outgoing sent_;
  Fifo<Letter> letters_;
  size_t posted_ = 0;  // parcels among the letters
};

// The events of such an update; `landed` is empty then.
void Tell(const Update& update, std::vector<Acknowledged>& landed, SendEvents& events);

// The worker's hold on its end of a link; lets go of it by closing it. `End` has
// the methods of SendLink.
template <class End>
class SendHandle : public SendLink {
 public:
  explicit SendHandle(std::shared_ptr<End> end) : end_(std::move(end)) {}
  ~SendHandle() override { end_->Close(absl::CancelledError("the worker let go of the link")); }
  const Hello& hello() const override { return end_->hello(); }
  int64_t credits() const override { return end_->credits(); }
  absl::Status Send(Sent&& sent) override { return end_->Send(std::move(sent)); }
  void Flush() override { end_->Flush(); }
  void Close(const absl::Status& reason) override { end_->Close(reason); }

 protected:
  const std::shared_ptr<End> end_;
};

}  // namespace penstock::transfer
