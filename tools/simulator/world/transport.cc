// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/world/transport.h"

#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "control/protocol/host_port.h"
#include "dataplane/transfer/message.h"
#include "include/status_macros.h"
#include "penstock/check.h"
#include "tools/simulator/world/receive_end.h"
#include "tools/simulator/world/transport_host.h"

namespace penstock::simulator {
namespace {

SimTransport* present = nullptr;

absl::Status NoSimulation() {
  return absl::NotFoundError("no simulation runs in this process");
}

std::string OwnCompatibility() {
  return transfer::ToString(transfer::kLinkVersions);
}

class SimListener : public transfer::Listener {
 public:
  SimListener(std::shared_ptr<TransportHost> host, std::string address)
      : host_(std::move(host)), address_(std::move(address)) {}
  ~SimListener() override { host_->Close(); }
  std::string address() const override { return address_; }
  std::string compatibility() const override { return OwnCompatibility(); }

 private:
  const std::shared_ptr<TransportHost> host_;
  const std::string address_;
};

class SimReceiveLink : public transfer::ReceiveLink {
 public:
  explicit SimReceiveLink(std::shared_ptr<ReceiveEnd> end) : end_(std::move(end)) {}
  ~SimReceiveLink() override { end_->Close(); }
  void Grant(transfer::Credits credits) override { end_->Grant(credits); }
  void Recall() override { end_->Recall(); }

 private:
  const std::shared_ptr<ReceiveEnd> end_;
};

// The registered transport. It cannot be removed, so it passes each call to the present object.
class Forwarder : public transfer::Transport {
 public:
  std::string_view name() const override { return "sim"; }
  int rank() const override { return -1; }  // before `local`, which would reach every process

  absl::StatusOr<std::unique_ptr<transfer::Listener>> Listen(
      const transfer::ListenOptions& options, transfer::Listener::Accept accept) override {
    if (present == nullptr) return NoSimulation();
    return present->Listen(options, std::move(accept));
  }
  absl::Status Check(std::string_view address, std::string_view compatibility) override {
    if (present == nullptr) return NoSimulation();
    if (compatibility == OwnCompatibility()) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat("the worker at ", std::string(address), " speaks '",
                                            std::string(compatibility), "', this client '",
                                            OwnCompatibility(), "'"));
  }
  absl::StatusOr<std::unique_ptr<transfer::ReceiveLink>> Dial(
      std::string_view address, transfer::DialOptions options,
      std::shared_ptr<transfer::ReceiveEvents> events) override {
    if (present == nullptr) return NoSimulation();
    return present->Dial(address, std::move(options), std::move(events));
  }
};

bool IsAddress(std::string_view address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  return colon != std::string_view::npos && colon > 0 &&
         absl::SimpleAtoi(std::string(address.substr(colon + 1)), &port) && port > 0;
}

}  // namespace

SimTransport::SimTransport(Scheduler& scheduler, Network& network)
    : scheduler_(scheduler), network_(network) {
  static const absl::Status registered = transfer::RegisterTransport(std::make_unique<Forwarder>());
  PENSTOCK_CHECK(registered.ok());
  PENSTOCK_CHECK(present == nullptr);
  present = this;
}

SimTransport::~SimTransport() {
  present = nullptr;
}

absl::StatusOr<std::unique_ptr<transfer::Listener>> SimTransport::Listen(
    const transfer::ListenOptions& options, transfer::Listener::Accept accept) {
  const std::shared_ptr<Process> process = scheduler_.current_process();
  if (process == nullptr) return absl::NotFoundError("only a simulated process may listen");
  const int port = options.port != 0 ? options.port : next_port_++;
  const std::string address = control::JoinHostPort(process->host(), port);
  auto host = std::make_shared<TransportHost>(scheduler_, process, std::move(accept));
  if (absl::Status listens = host->Listen(network_, address); !listens.ok()) {
    return absl::UnavailableError(listens.message());
  }
  return std::make_unique<SimListener>(std::move(host), address);
}

absl::StatusOr<std::unique_ptr<transfer::ReceiveLink>> SimTransport::Dial(
    std::string_view address, transfer::DialOptions options,
    std::shared_ptr<transfer::ReceiveEvents> events) {
  if (!IsAddress(address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", std::string(address), "' is not a worker address; use host:port"));
  }
  auto end =
      std::make_shared<ReceiveEnd>(std::string(address), std::move(options), std::move(events));
  end->Dial(scheduler_, network_);
  return std::make_unique<SimReceiveLink>(std::move(end));
}

}  // namespace penstock::simulator
