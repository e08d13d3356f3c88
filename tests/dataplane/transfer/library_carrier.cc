// SPDX-License-Identifier: Apache-2.0
// A library with a transport that runs nowhere.
#include "dataplane/transfer/library.h"

namespace penstock::transfer {
namespace {

class Carrier final : public Transport {
 public:
  std::string_view name() const override { return "carrier"; }
  int rank() const override { return 1000; }
  absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions&,
                                                   Listener::Accept) override {
    return absl::NotFoundError("no roof");
  }
  absl::Status Check(std::string_view, std::string_view) override {
    return absl::NotFoundError("no roof");
  }
  absl::StatusOr<std::unique_ptr<ReceiveLink>> Dial(std::string_view, DialOptions,
                                                    std::shared_ptr<ReceiveEvents>) override {
    return absl::NotFoundError("no roof");
  }
};

}  // namespace
}  // namespace penstock::transfer

PENSTOCK_EXPORT_TRANSPORT(std::make_unique<penstock::transfer::Carrier>());
