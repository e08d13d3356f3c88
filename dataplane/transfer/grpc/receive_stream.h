// SPDX-License-Identifier: Apache-2.0
// The client's end of a gRPC link.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "control/sync/mutex.h"
#include "dataplane/transfer/element_receiver.h"
#include "dataplane/transfer/gate.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer {

inline constexpr char kLinkMethod[] = "/penstock.Transfer/Link";

// The object keeps itself alive until gRPC has finished with it.
class ReceiveStream : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                      public std::enable_shared_from_this<ReceiveStream> {
 public:
  // Calls the worker at `target` ("host:port") and sends the hello.
  static std::shared_ptr<ReceiveStream> Start(
      std::string target, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
      DialOptions options, std::shared_ptr<ReceiveEvents> events);

  void Grant(Credits credits);
  void Recall();
  // After it returns, no event begins. Notifies the worker if the link is still open.
  void Close();

 private:
  ReceiveStream(std::string target, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                DialOptions options, std::shared_ptr<ReceiveEvents> events);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  // Inside the gate:
  absl::Status Handle();
  absl::Status HandleOther();
  absl::Status Receive(MessageType type);
  void Open();

  void ReportReceived(int64_t count);  // together with waiting credits, if any
  // Cancels the call after `timeout` unless the alarm is cancelled earlier.
  void CancelAfter(absl::Duration timeout);
  void WriteNext() REQUIRES(mu_);

  const std::string target_;
  DialOptions options_;
  Pool& pool_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  std::shared_ptr<ReceiveStream> self_;    // until OnDone
  std::shared_ptr<ReceiveEvents> events_;  // used by the reading side; until OnDone
  Gate gate_;                              // around events, and around use of the pool
  grpc::ByteBuffer read_;
  ElementReceiver receiver_;
  bool open_ = false;    // used by the reading side
  absl::Status broken_;  // used by the reading side: why it stopped

  Mutex mu_;
  std::optional<grpc::Alarm> alarm_ GUARDED_BY(mu_);
  bool timed_out_ GUARDED_BY(mu_) = false;
  bool closed_ GUARDED_BY(mu_) = false;  // by this client
  bool over_ GUARDED_BY(mu_) = false;    // nothing more may be written
  bool busy_ GUARDED_BY(mu_) = false;    // a write is in progress
  bool hold_ GUARDED_BY(mu_) = true;     // gRPC waits for RemoveHold()
  grpc::ByteBuffer writing_ GUARDED_BY(mu_);
  Update waiting_ GUARDED_BY(mu_);  // the next update to the worker
};

}  // namespace penstock::transfer
