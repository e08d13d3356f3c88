// SPDX-License-Identifier: Apache-2.0
// The worker's end of a link: a connection that somebody made, a stranger until
// its hello was accepted. Whoever sends writes to the socket at once, and the
// loop goes on when it was full. A frame that is not full waits until it was open
// for 1 ms at least and 2 ms at most, or until Flush(). So do elements that follow
// each other fast, until they are worth a system call and its packets.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/link_codec.h"
#include "dataplane/transfer/outbox.h"
#include "dataplane/transfer/tcp/incoming.h"
#include "dataplane/transfer/tcp/loop.h"
#include "dataplane/transfer/tcp/socket.h"
#include "dataplane/transfer/tcp/wire.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer::tcp {

// Its events come from whoever serves the loop.
class SendSocket : public Loop::Member, public std::enable_shared_from_this<SendSocket> {
 public:
  // Whoever accepted the connection; told by whoever serves the loop.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual absl::StatusOr<std::shared_ptr<SendEvents>> Accept(const Hello& hello,
                                                               std::shared_ptr<SendLink> link) = 0;
    // It is no stranger any more.
    virtual void OnGreeted(SendSocket& socket) = 0;
    // The last that happens.
    virtual void OnOver(SendSocket& socket) = 0;
  };

  // `owner` lives until OnOver() or until the loop was stopped.
  SendSocket(std::shared_ptr<Loop> loop, Socket socket, Owner& owner);
  // To be called once, by whoever serves. From here on the time to say hello runs.
  absl::Status Start(std::chrono::milliseconds hello_timeout);

  // As SendLink's.
  const Hello& hello() const { return hello_; }
  int64_t credits() const;
  absl::Status Send(Sent&& sent);
  void Flush();
  void Close(const absl::Status& reason);
  // Ends it without a word to the client, for one that does not read. Any thread.
  void Break(const absl::Status& reason);

 private:
  // What is being written: text alone, or a head and a parcel's bytes.
  struct Piece {
    std::string text;
    MessageType type = MessageType::kElement;
    absl::Span<const std::byte> bytes;
    Loan loan;
    int64_t count = 0;     // of elements and errors
    bool encoded = false;  // head and bytes are as they are sent
    Head head{};
    size_t size() const { return text.empty() ? head.size() + bytes.size() : text.size(); }
  };

  void OnReady(uint32_t events) override;
  void OnDeadline() override;

  // By whoever serves:
  absl::Status ReadOn();
  absl::Status MakeRoom();
  absl::Status Handle();
  absl::Status Greet(Hello hello);
  absl::Status Handle(const Update& update);
  void ReadNoMore(const absl::Status& reason);
  void EndIfOver();

  // With mu_ held:
  void BreakLocked(const absl::Status& reason);
  void FlushLater();
  // Whether what was sent just now, of so many bytes, may wait for more to go with.
  bool Holds(size_t bytes);
  // Writes until the socket is full or all is written, unless another thread does.
  // Lets go of `lock` meanwhile.
  void Write(std::unique_lock<std::mutex>& lock);
  void TakePieces();
  Piece NextPiece();
  void ShutDown();

  // By whoever writes, without mu_:
  void EncodePiece(Piece& piece);
  enum class Wrote { kAll, kSome, kFailed };
  Wrote WritePieces();
  void Written(size_t bytes);

  const std::shared_ptr<Loop> loop_;
  Owner& owner_;

  // Of whoever serves.
  Incoming incoming_{kMaxRequestBytes};
  bool greeted_ = false;
  bool deaf_ = false;  // what still comes is dropped
  bool over_ = false;
  Hello hello_;       // constant once accepted, as is
  uint8_t sums_ = 0;  // whether sums are of whole bodies: kSumOfAll
  std::shared_ptr<SendEvents> events_;

  LinkCodec codec_{DefaultPool()};

  // Of whoever writes.
  Fifo<Piece> pieces_;
  size_t written_ = 0;  // bytes of the first piece
  int write_error_ = 0;

  mutable std::mutex mu_;
  // All below guarded by mu_; the descriptor stays open while somebody writes.
  Socket socket_;
  Outbox outbox_;
  bool deadline_set_ = false;  // for the frame that is open, or what is held
  uint64_t frame_ = 0;         // which it was then
  size_t held_bytes_ = 0;      // of what waits for more to go with
  Loop::Clock::time_point last_send_;
  bool accepting_ = true;     // nothing is written before the hello was answered
  bool writing_ = false;      // by some thread
  bool writable_ = true;      // as far as is known
  bool closing_ = false;      // no more Send(); reason_ says why
  bool closed_said_ = false;  // the last message is among pieces_, or written
  bool shut_down_ = false;    // nothing more goes out; waits for the client's end
  bool broken_ = false;       // to be ended at once
  absl::Status reason_;
};

}  // namespace penstock::transfer::tcp
