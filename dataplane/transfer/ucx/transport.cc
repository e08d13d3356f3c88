// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/transport.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/ucx/address.h"
#include "dataplane/transfer/ucx/compatibility.h"
#include "dataplane/transfer/ucx/engine.h"
#include "dataplane/transfer/ucx/listener.h"
#include "dataplane/transfer/ucx/memory.h"
#include "dataplane/transfer/ucx/receive_end.h"
#include "dataplane/transfer/ucx/settings.h"
#include "dataplane/transfer/verbs/devices.h"
#include "include/status_macros.h"

namespace penstock::transfer {
namespace ucx {
namespace {

constexpr char kName[] = "ucx";

// NotFound with the reason if no RDMA device has a port that is up.
absl::Status CheckDevices() {
  constexpr absl::string_view kSo =
      "'ucx' needs such a device (ucx_lanes = tcp works without one, for tests); 'tcp' runs "
      "everywhere";
  const absl::StatusOr<std::vector<verbs::Device>> devices = verbs::ListDevices();
  if (!devices.ok()) {
    return absl::NotFoundError(
        absl::StrCat("no usable RDMA device: ", devices.status().message(), "; ", kSo));
  }
  for (const verbs::Device& device : *devices) {
    for (const verbs::Port& port : device.ports) {
      if (port.state == verbs::PortState::kActive) return absl::OkStatus();
    }
  }
  return absl::NotFoundError(absl::StrCat(
      "no usable RDMA device: ",
      devices->empty() ? "the machine has none" : "no device has a port that is up", "; ", kSo));
}

// NotFound if this process cannot use UCX, for any reason. After the first success, the ports are
// no longer checked here. If a port goes down later, only the links that use it fail, and these may
// be dialled again.
absl::StatusOr<Ready> GetReady() {
  ASSIGN_OR_RETURN(const Settings settings, CurrentSettings());
  static std::atomic<bool> could{false};
  if (settings.lanes == Lanes::kRdma && !could) RETURN_IF_ERROR(CheckDevices());
  const absl::StatusOr<Resources*> resources = TheResources();
  if (!resources.ok()) return absl::NotFoundError(resources.status().message());
  could = true;
  return Ready{settings, *resources};
}

class UcxReceiveLink final : public ReceiveLink {
 public:
  explicit UcxReceiveLink(std::shared_ptr<ReceiveEnd> end) : end_(std::move(end)) {}
  ~UcxReceiveLink() override {
    if (end_->runs()) end_->Close();
  }
  void Grant(Credits credits) override {
    if (end_->runs()) end_->Grant(credits);
  }
  void Recall() override {
    if (end_->runs()) end_->Recall();
  }

 private:
  const std::shared_ptr<ReceiveEnd> end_;
};

class UcxTransport final : public Transport {
 public:
  UcxTransport(std::string name, std::function<absl::StatusOr<Ready>()> ready)
      : name_(std::move(name)), ready_(std::move(ready)) {}
  ~UcxTransport() override {
    for (const std::shared_ptr<Engine>& engine : engines_) engine->Stop();
  }
  std::string_view name() const override { return name_; }

  // Ranks before tcp if a NIC moves the bytes; otherwise "auto" should not choose ucx.
  int rank() const override {
    const absl::StatusOr<Settings> settings = CurrentSettings();
    return settings.ok() && settings->lanes == Lanes::kRdma ? 40 : 100;
  }

  absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions&,
                                                   Listener::Accept accept) override {
    ASSIGN_OR_RETURN(const Ready ready, ready_());
    return StartListener(*ready.resources, ready.settings, std::move(accept));
  }

  absl::Status Check(std::string_view, std::string_view compatibility) override {
    ASSIGN_OR_RETURN(const Ready ready, ready_());
    return CheckCompatibility(compatibility, ready.resources->fabric.release(), ready.settings);
  }

  absl::StatusOr<std::unique_ptr<ReceiveLink>> Dial(
      std::string_view address, DialOptions options,
      std::shared_ptr<ReceiveEvents> events) override {
    RETURN_IF_ERROR(DecodeAddress(address).status());
    ASSIGN_OR_RETURN(const Ready ready, ready_());
    ASSIGN_OR_RETURN(std::shared_ptr<Engine> engine, ClientEngine(ready));
    auto end =
        std::make_shared<ReceiveEnd>(std::move(engine), *ready.resources, std::string(address),
                                     std::move(options), std::move(events));
    end->Start();
    return std::make_unique<UcxReceiveLink>(std::move(end));
  }

 private:
  // Returns the engine for all links that this process dials. If the engine is unusable, new links
  // get a new engine.
  absl::StatusOr<std::shared_ptr<Engine>> ClientEngine(const Ready& ready) {
    MutexLock lock(mu_);
    std::erase_if(engines_, [](const std::shared_ptr<Engine>& engine) {
      if (!engine->unusable() || engine.use_count() > 1) return false;
      engine->Stop();
      return true;
    });
    if (engines_.empty() || engines_.back()->unusable()) {
      ASSIGN_OR_RETURN(std::shared_ptr<Engine> engine,
                       Engine::Start(*ready.resources, ready.settings.lanes, nullptr));
      engines_.push_back(std::move(engine));
    }
    return engines_.back();
  }

  const std::string name_;
  const std::function<absl::StatusOr<Ready>()> ready_;
  Mutex mu_;
  std::vector<std::shared_ptr<Engine>> engines_ GUARDED_BY(mu_);  // the last takes new links
};

}  // namespace

void OpenEarly() {
  GetReady().status().IgnoreError();
}

bool IsNamed(std::string_view protocol, const std::vector<std::string>& fallback) {
  return protocol == kName || std::find(fallback.begin(), fallback.end(), kName) != fallback.end();
}

std::unique_ptr<Transport> MakeTransport(std::string name,
                                         std::function<absl::StatusOr<Ready>()> ready) {
  return std::make_unique<UcxTransport>(std::move(name), std::move(ready));
}

}  // namespace ucx

std::unique_ptr<Transport> MakeUcxTransport() {
  return ucx::MakeTransport(ucx::kName, ucx::GetReady);
}

}  // namespace penstock::transfer
