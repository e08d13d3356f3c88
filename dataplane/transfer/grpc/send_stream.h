// SPDX-License-Identifier: Apache-2.0
// The worker's end of a gRPC link. One write at a time; what waits for it is
// bounded by the credits. A frame that is not full waits until it was open for
// 1 ms at least and 2 ms at most, or until Flush().
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "dataplane/transfer/link_codec.h"
#include "dataplane/transfer/outbox.h"
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
  void Flush();
  void Close(const absl::Status& reason);
  // For a client that does not read: breaks the call. Not behind `done`.
  void Cancel();

 private:
  SendStream(grpc::GenericCallbackServerContext* context, Listener::Accept accept,
             std::function<void(SendStream*)> done);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  absl::Status Handle(const std::string& bytes);
  absl::Status Handle(Hello hello);
  absl::Status Handle(const Update& update);
  // Those below with mu_ held.
  void Break(const absl::Status& reason);
  void FlushLater();
  void WriteNext();
  grpc::ByteBuffer NextMessage();

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
  LinkCodec codec_{DefaultPool()};
  Outbox outbox_;
  std::optional<grpc::Alarm> alarm_;
  bool alarm_set_ = false;
  grpc::ByteBuffer writing_;
  bool accepting_ = true;  // neither write nor finish before the hello was answered
  bool busy_ = false;      // a write is under way
  bool finished_ = false;  // Finish() was called
  bool broken_ = false;    // write nothing more
  bool closing_ = false;   // no more Send(); reason_ says why
  absl::Status reason_;
};

}  // namespace penstock::transfer
