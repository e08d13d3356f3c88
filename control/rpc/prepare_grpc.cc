// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/prepare_grpc.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "absl/synchronization/mutex.h"

namespace penstock::control {
namespace {

// A call that is prepared but never started. It counts as a user of gRPC's callback threads.
class NeverStarted : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  NeverStarted() { stub_.PrepareBidiStreamingCall(&context_, "/none", {}, this); }

 private:
  grpc::GenericStub stub_{
      grpc::CreateChannel("ipv4:127.0.0.1:1", grpc::InsecureChannelCredentials())};
  grpc::ClientContext context_;
};

}  // namespace

void PrepareGrpc() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  static NeverStarted* volatile kept = new NeverStarted;  // volatile: else reported as a leak
  (void)kept;
}

}  // namespace penstock::control
