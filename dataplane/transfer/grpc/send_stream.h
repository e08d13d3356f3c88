// SPDX-License-Identifier: Apache-2.0
// The worker's end of a gRPC link. There is one write at a time, and the credits bound the messages
// that wait. A frame that is not full waits until it has been open for 1 to 2 ms, or until Flush().
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/sync/mutex.h"
#include "dataplane/transfer/link_codec.h"
#include "dataplane/transfer/send_queue.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer {

// The object keeps itself alive until gRPC has finished with it.
class SendStream : public grpc::ServerGenericBidiReactor,
                   public std::enable_shared_from_this<SendStream> {
 public:
  // The object that answers the calls. Called on gRPC's threads.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual absl::StatusOr<std::shared_ptr<SendEvents>> Accept(const Hello& hello,
                                                               std::shared_ptr<SendLink> link) = 0;
    // The hello has arrived: the client no longer counts as unauthenticated.
    virtual void OnHelloReceived(SendStream& stream) = 0;
    // The hello was accepted: the client of the connection from `peer` is authenticated.
    virtual void OnAuthenticated(const std::string& peer) = 0;
    // This is the last call on the object.
    virtual void OnOver(SendStream& stream) = 0;
  };

  // Answers one call, whose hello must arrive within `hello_timeout`. `owner` lives until OnOver().
  static SendStream* Start(grpc::GenericCallbackServerContext* context, Owner& owner,
                           std::chrono::milliseconds hello_timeout);

  const Hello& hello() const { return hello_; }
  int64_t credits() const;
  absl::Status Send(Sent&& sent);
  void Flush();
  void Close(const absl::Status& reason);
  // Breaks off the call; for a client that does not read. Must not be called after OnOver().
  void Cancel();
  // Ends the call if the client has not been admitted yet. Any thread; must not be called after
  // OnOver().
  void Reject(const absl::Status& reason);

 private:
  SendStream(grpc::GenericCallbackServerContext* context, Owner& owner);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  absl::Status Handle(const std::string& bytes);
  absl::Status Handle(Hello hello);
  absl::Status Handle(const Update& update);
  void Break(const absl::Status& reason) REQUIRES(mu_);
  void FlushLater() REQUIRES(mu_);
  void WriteNext() REQUIRES(mu_);
  grpc::ByteBuffer MessageOf(SendQueue::OutgoingMessage next) REQUIRES(mu_);

  grpc::GenericCallbackServerContext* const context_;
  Owner& owner_;
  std::shared_ptr<SendStream> self_;  // until OnDone

  // Used by the reading side only.
  grpc::ByteBuffer read_;
  bool hello_received_ = false;
  Hello hello_;  // constant once accepted
  std::shared_ptr<SendEvents> events_;
  std::vector<Acknowledged> received_;  // reported by one update

  LinkCodec codec_{DefaultPool()};

  mutable Mutex mu_;
  SendQueue queue_ GUARDED_BY(mu_);
  std::optional<grpc::Alarm> alarm_ GUARDED_BY(mu_);  // for the hello, then for frames
  bool alarm_set_ GUARDED_BY(mu_) = false;
  grpc::ByteBuffer writing_ GUARDED_BY(mu_);
  bool busy_ GUARDED_BY(mu_) = false;      // a write is in progress
  bool finished_ GUARDED_BY(mu_) = false;  // Finish() was called
  bool broken_ GUARDED_BY(mu_) = false;    // write nothing more
};

}  // namespace penstock::transfer
