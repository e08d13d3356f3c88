// SPDX-License-Identifier: Apache-2.0
// A worker always offers "grpc"; here `tcp` has that name.
#include "absl/status/statusor.h"
#include "dataplane/transfer/transport.h"
#include "penstock/check.h"

namespace penstock::transfer {
namespace {

class GrpcOverTcp final : public Transport {
 public:
  std::string_view name() const override { return "grpc"; }
  int rank() const override { return 90; }
  absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions& options,
                                                   Listener::Accept accept) override {
    return Tcp().Listen(options, std::move(accept));
  }
  absl::Status Check(std::string_view address, std::string_view compatibility) override {
    return Tcp().Check(address, compatibility);
  }
  absl::StatusOr<std::unique_ptr<ReceiveLink>> Dial(
      std::string_view address, DialOptions options,
      std::shared_ptr<ReceiveEvents> events) override {
    return Tcp().Dial(address, std::move(options), std::move(events));
  }

 private:
  static Transport& Tcp() { return **FindTransport("tcp"); }
};

[[maybe_unused]] const bool kRegistered = [] {
  PENSTOCK_CHECK(RegisterTransport(std::make_unique<GrpcOverTcp>()).ok());
  return true;
}();

}  // namespace
}  // namespace penstock::transfer
