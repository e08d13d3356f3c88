// SPDX-License-Identifier: Apache-2.0
// A protocol outside Penstock's tree. `relay` passes every link on to `tcp` and counts the received
// elements. It uses only the installed package, and shows everything that a transport must provide.
// docs/transports.md walks through it.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "dataplane/transfer/library.h"
#include "dataplane/transfer/transport.h"
#include "penstock/penstock.h"

namespace relay {
namespace {

namespace transfer = penstock::transfer;

constexpr char kBelow[] = "tcp";

// The count of this process. Prints it at exit, to show that `relay` was used.
struct Count {
  std::atomic<int64_t> elements = 0;
  ~Count() {
    if (elements > 0) {
      std::fprintf(stderr, "relay: %lld elements\n", static_cast<long long>(elements));
    }
  }
} received;

// --- The worker's end ----------------------------------------------------------

// The worker's link. Destroying it destroys the link below, which closes the connection.
class Sender final : public transfer::SendLink {
 public:
  explicit Sender(std::shared_ptr<transfer::SendLink> below) : below_(std::move(below)) {}
  const transfer::Hello& hello() const override { return below_->hello(); }
  int64_t credits() const override { return below_->credits(); }
  absl::Status Send(transfer::Sent&& sent) override { return below_->Send(std::move(sent)); }
  std::shared_ptr<penstock::Pool> pool() override { return below_->pool(); }
  void Flush() override { below_->Flush(); }
  void Close(const absl::Status& reason) override { below_->Close(reason); }

 private:
  const std::shared_ptr<transfer::SendLink> below_;
};

class RelayListener final : public transfer::Listener {
 public:
  explicit RelayListener(std::unique_ptr<transfer::Listener> below) : below_(std::move(below)) {}
  std::string address() const override { return below_->address(); }
  std::string compatibility() const override { return below_->compatibility(); }

 private:
  const std::unique_ptr<transfer::Listener> below_;
};

// --- The client's end ----------------------------------------------------------

// Passes events from the link below to the client's session.
class Events final : public transfer::ReceiveEvents {
 public:
  explicit Events(std::shared_ptr<transfer::ReceiveEvents> above) : above_(std::move(above)) {}
  void OnOpen() override { above_->OnOpen(); }
  void OnElements(absl::Span<penstock::Element> elements) override {
    received.elements += static_cast<int64_t>(elements.size());
    above_->OnElements(elements);
  }
  void OnError(const penstock::Identity& identity, const absl::Status& error) override {
    above_->OnError(identity, error);
  }
  void OnRecalled(transfer::Credits credits) override { above_->OnRecalled(credits); }
  void OnClosed(const absl::Status& reason) override { above_->OnClosed(reason); }

 private:
  const std::shared_ptr<transfer::ReceiveEvents> above_;
};

class Receiver final : public transfer::ReceiveLink {
 public:
  explicit Receiver(std::unique_ptr<transfer::ReceiveLink> below) : below_(std::move(below)) {}
  void Grant(transfer::Credits credits) override { below_->Grant(credits); }
  void Recall() override { below_->Recall(); }

 private:
  const std::unique_ptr<transfer::ReceiveLink> below_;
};

// --- The transport -------------------------------------------------------------

class RelayTransport final : public transfer::Transport {
 public:
  std::string_view name() const override { return "relay"; }
  int rank() const override { return 1000; }  // "auto" prefers Penstock's own protocols

  absl::StatusOr<std::unique_ptr<transfer::Listener>> Listen(
      const transfer::ListenOptions& options, transfer::Listener::Accept accept) override {
    PENSTOCK_ASSIGN_OR_RETURN(transfer::Transport * below, transfer::FindTransport(kBelow));
    PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<transfer::Listener> listener,
                              below->Listen(options, [accept = std::move(accept)](
                                                         const transfer::Hello& hello,
                                                         std::shared_ptr<transfer::SendLink> link) {
                                return accept(hello, std::make_shared<Sender>(std::move(link)));
                              }));
    return std::make_unique<RelayListener>(std::move(listener));
  }

  absl::Status Check(std::string_view address, std::string_view compatibility) override {
    PENSTOCK_ASSIGN_OR_RETURN(transfer::Transport * below, transfer::FindTransport(kBelow));
    return below->Check(address, compatibility);
  }

  absl::StatusOr<std::unique_ptr<transfer::ReceiveLink>> Dial(
      std::string_view address, transfer::DialOptions options,
      std::shared_ptr<transfer::ReceiveEvents> events) override {
    PENSTOCK_ASSIGN_OR_RETURN(transfer::Transport * below, transfer::FindTransport(kBelow));
    PENSTOCK_ASSIGN_OR_RETURN(
        std::unique_ptr<transfer::ReceiveLink> link,
        below->Dial(address, std::move(options), std::make_shared<Events>(std::move(events))));
    return std::make_unique<Receiver>(std::move(link));
  }
};

}  // namespace
}  // namespace relay

PENSTOCK_EXPORT_TRANSPORT(std::make_unique<relay::RelayTransport>());
