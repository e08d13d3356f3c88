// SPDX-License-Identifier: Apache-2.0
// The worker's end of a gRPC link. One write at a time; what waits for it is
// bounded by the credits.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/grpc/message.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer {

// Lives until gRPC is done with it, by itself.
class SendStream : public grpc::ServerGenericBidiReactor,
                   public std::enable_shared_from_this<SendStream> {
 public:
  // Answers one call. `accept` and `done` must be callable until `done` was
  // called, which is the last thing that happens.
  static SendStream* Start(grpc::GenericCallbackServerContext* context, Listener::Accept accept,
                           std::function<void(SendStream*)> done);

  const Hello& hello() const { return hello_; }
  int64_t credits() const;
  absl::Status Send(Sent&& sent);
  void Close(const absl::Status& reason);
  // For a client that does not read: breaks the call. Not behind `done`.
  void Cancel();

 private:
  // What is to be written, in order.
  struct Outgoing {
    enum Kind { kWelcome, kSent, kRecalled } kind = kWelcome;
    int64_t count = 0;
  };

  SendStream(grpc::GenericCallbackServerContext* context, Listener::Accept accept,
             std::function<void(SendStream*)> done);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  absl::Status Handle(const std::string& bytes);
  absl::Status Handle(Hello hello);
  absl::Status Handle(const Update& update);
  // The three below: with mu_ held.
  void Break(const absl::Status& reason);
  void WriteNext();
  grpc::ByteBuffer NextMessage();
  grpc::ByteBuffer NextSent();
  // How many of the elements to be written next share a frame; 1: none.
  size_t CountForFrame();

  grpc::GenericCallbackServerContext* const context_;
  Listener::Accept accept_;
  const std::function<void(SendStream*)> done_;
  std::shared_ptr<SendStream> self_;  // until OnDone

  // Of the reading side.
  grpc::ByteBuffer read_;
  bool greeted_ = false;
  Hello hello_;  // constant once accepted
  std::shared_ptr<SendEvents> events_;

  mutable std::mutex mu_;
  // All below guarded by mu_.
  int64_t credits_ = 0;
  Fifo<Sent> sent_;  // not landed yet; the first `written_` were given to gRPC
  size_t written_ = 0;
  Fifo<Outgoing> outbox_;
  grpc::ByteBuffer writing_;
  bool accepting_ = true;  // neither write nor finish before the hello was answered
  bool busy_ = false;      // a write is under way
  bool finished_ = false;  // Finish() was called
  bool broken_ = false;    // write nothing more
  bool closing_ = false;   // no more Send(); reason_ says why
  absl::Status reason_;
};

}  // namespace penstock::transfer
