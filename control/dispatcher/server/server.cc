// SPDX-License-Identifier: Apache-2.0
// DispatchServer: journal, core, listener, and the threads that find dead peers.
#include "control/dispatcher/server/server.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "control/dispatcher/core.h"
#include "control/dispatcher/messages/refusals.h"
#include "control/dispatcher/server/job_key.h"
#include "control/dispatcher/server/led_journal.h"
#include "control/dispatcher/server/listener.h"
#include "control/dispatcher/server/page_access.h"
#include "control/dispatcher/server/probe.h"
#include "control/dispatcher/server/status_page.h"
#include "control/observe/metrics.h"
#include "control/observe/page_server.h"
#include "control/policy/worker_list.h"
#include "control/protocol/dispatcher_status.h"
#include "control/protocol/host_port.h"
#include "control/settings/server_settings.h"
#include "control/sync/clock.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/random.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using control::Core;
using control::CoreOptions;
using control::Journal;

// The time between two sweeps: short enough that a death is noticed well within a second.
constexpr absl::Duration kInterval = absl::Milliseconds(100);

// How long a request for the status page waits for the core.
constexpr absl::Duration kStatusPatience = absl::Seconds(2);

absl::Status CheckLimits(const std::string& of, const NamespaceLimits& limits) {
  if (std::min({limits.jobs, limits.dataset_bytes, limits.partitions, limits.clients,
                limits.worker_percent}) < 0) {
    return absl::InvalidArgumentError(absl::StrCat("the limits of ", of, " must not be negative"));
  }
  if (limits.worker_percent <= 100) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("max_worker_percent of ", of, " is ",
                                                 limits.worker_percent, "; the maximum is 100"));
}

absl::Status CheckConfig(const DispatcherConfig& config) {
  const bool durable = !config.work_dir.empty() || !config.journal.empty();
  if (config.fault_tolerant_mode && !durable) {
    return absl::InvalidArgumentError(
        "fault_tolerant_mode is True, but no work_dir is configured.");
  }
  if (!config.journal_key_file.empty() && !durable) {
    return absl::InvalidArgumentError(
        "journal_key_file is configured without work_dir; without a journal, the key is in memory "
        "only");
  }
  RETURN_IF_ERROR(control::CheckLeaderSettings(config));
  if (config.protocol != "grpc") {
    return absl::NotFoundError(
        absl::StrCat("No credentials factory has been registered for protocol ", config.protocol,
                     "; known: grpc"));
  }
  RETURN_IF_ERROR(control::CheckWorkerAddresses(config.worker_addresses));
  if (config.port < 0 || config.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("port is ", config.port, "; it must be from 0 to 65535"));
  }
  if (config.metrics_port < -1 || config.metrics_port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("metrics_port is ", config.metrics_port,
                                                   "; it must be -1 or from 0 to 65535"));
  }
  RETURN_IF_ERROR(CheckLimits("a namespace", config.namespace_limits));
  for (const auto& [name, limits] : config.namespaces) {
    RETURN_IF_ERROR(Annotate(control::CheckScoped(name, ""), "[namespaces.", name, "]"));
    RETURN_IF_ERROR(CheckLimits(absl::StrCat("[namespaces.", name, "]"), limits));
  }
  if (config.max_links < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_links is ", config.max_links, "; it must not be negative"));
  }
  for (const auto& [name, duration] :
       {std::pair("client_timeout", config.client_timeout),
        std::pair("worker_timeout", config.worker_timeout),
        std::pair("heartbeat_interval", config.heartbeat_interval)}) {
    if (duration <= absl::ZeroDuration()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " must be positive"));
    }
  }
  return absl::OkStatus();
}

class Server final : public DispatchServer {
 public:
  Server(DispatcherConfig config, protocol::Broken broken)
      : config_(std::move(config)), broken_(broken) {}
  ~Server() override { Stop(); }

  absl::Status Open() {
    RETURN_IF_ERROR(CheckConfig(config_));
    std::unique_ptr<Journal> journal = control::OpenMemoryJournal();
    if (control::HasStandbys(config_)) {
      ASSIGN_OR_RETURN(leadership_,
                       control::WaitToLead(config_, [this](const absl::Status& why) { End(why); }));
      ASSIGN_OR_RETURN(journal, control::OpenLedJournal(config_, leadership_->term()));
    } else if (!config_.work_dir.empty()) {
      ASSIGN_OR_RETURN(journal, control::OpenSqliteJournal(config_.work_dir));
    }
    // A fleet that comes back waits in the port's queue while the journal is read. If the port
    // refused its connections, it would come again and again.
    ASSIGN_OR_RETURN(listener_, control::Listener::Bind(config_));
    ASSIGN_OR_RETURN(core_, Core::Open(Options(), std::move(journal)));
    WarnIfOpen();
    RETURN_IF_ERROR(listener_->Serve(core_.get()));
    port_ = listener_->port();
    if (config_.metrics_port >= 0) {
      ASSIGN_OR_RETURN(
          status_server_,
          PageServer::StartFor(
              control::WithoutBrackets(PagesHost(config_)), config_.metrics_port,
              {{"/", [this](const std::string& viewer) { return RenderStatus(viewer); }},
               {"/metrics", [this](const std::string&) { return RenderMetrics(); }}},
              [this](const std::string& token, const std::string& address) {
                return access_.Admit(*listener_, token, address);
              }));
    }
    return StartThreads();
  }

  int port() const override { return port_; }
  std::string target() const override {
    const char* protocol = config_.tls.certificate.empty() ? "grpc://" : "grpcs://";
    return absl::StrCat(protocol, control::JoinHostPort(config_.host, port_));
  }
  int NumWorkers() const override {
    MutexLock lock(mu_);
    return core_ == nullptr ? 0 : core_->NumWorkers();
  }

  int metrics_port() const override {
    return status_server_ == nullptr ? -1 : status_server_->port();
  }

  absl::Status status() const override {
    MutexLock lock(mu_);
    return status_;
  }

  void Stop() override {
    {
      MutexLock lock(mu_);
      if (stopping_) return;
      stopping_ = true;
      changed_.NotifyAll();
    }
    status_server_.reset();
    if (sweeper_.joinable()) sweeper_.join();
    if (prober_.joinable()) prober_.join();
    if (rights_sweeper_.joinable()) rights_sweeper_.join();
    if (core_ != nullptr) core_->BeginToLeave();
    listener_.reset();
    std::unique_ptr<Core> core;
    {
      MutexLock lock(mu_);
      core = std::move(core_);
    }
    core.reset();  // also closes the journal, so that another dispatcher may open it
    if (leadership_ != nullptr) leadership_->Resign();
    MutexLock lock(mu_);
    stopped_ = true;
    changed_.NotifyAll();
  }

  void Join() override {
    MutexLock lock(mu_);
    changed_.Wait(lock, [this]() REQUIRES(mu_) { return stopped_ || !status_.ok(); });
  }

 private:
  void WarnIfOpen() const {
    if (control::IsLoopback(config_.host) || !config_.auth_file.empty() || config_.tls.mutual)
      return;
    StderrEventLog()->Write(
        {"open_to_all",
         {{"host", config_.host},
          {"why",
           "every process that reaches the port may register datasets, which read files on "
           "workers, and may read and end every job; set auth_file or tls_mutual"}}});
  }

  CoreOptions Options() {
    CoreOptions options;
    options.client_timeout = config_.client_timeout;
    options.worker_timeout = config_.worker_timeout;
    options.heartbeat_interval = config_.heartbeat_interval;
    options.job_gc_timeout = config_.job_gc_timeout;
    options.gc_dynamic_sharding_jobs = config_.gc_dynamic_sharding_jobs;
    const auto unless_0 = [](absl::Duration ttl) {
      return ttl == absl::ZeroDuration() ? absl::InfiniteDuration() : ttl;
    };
    options.abandoned_job_ttl = unless_0(config_.abandoned_job_ttl);
    options.dataset_ttl = unless_0(config_.dataset_ttl);
    options.worker_addresses = config_.worker_addresses;
    options.deployment_mode = config_.deployment_mode;
    options.quotas = control::Quotas(config_.namespace_limits, config_.namespaces);
    options.max_links = config_.max_links;
    options.now = BootTime;
    options.random = RandomNumber;
    options.job_tokens = [this](uint64_t needed) -> absl::StatusOr<control::JobTokens> {
      if (config_.work_dir.empty() && config_.journal.empty()) {
        return control::TokensWith(control::DrawJobKey());
      }
      return control::OpenJobKey(config_, needed);
    };
    options.port_refuses = control::PortRefuses;
    options.events = StderrEventLog();
    options.broken = broken_;
    options.on_failure = [this](const absl::Status& status) { End(status); };
    if (leadership_ != nullptr) {
      options.leads = [this] { return BootTime() < leadership_->HoldsUntil(); };
    }
    return options;
  }

  // Lets the sweeper's thread end the service. `why`: the first reason counts.
  void End(const absl::Status& why) {
    MutexLock lock(mu_);
    if (status_.ok()) status_ = why;
    changed_.NotifyAll();
  }

  std::string RenderMetrics() const {
    ProcessMetrics()
        .GetGauge("penstock_dispatcher_workers", "Workers that are connected.")
        .Set(core_->NumWorkers());
    return ProcessMetrics().Render();
  }

  std::string RenderStatus(const std::string& viewer) const {
    const absl::StatusOr<control::Caller> caller = access_.CallerOf(*listener_, viewer);
    if (!caller.ok()) return absl::StrCat(caller.status().message(), "\n");
    const absl::StatusOr<control::DispatcherStatus> status = control::CollectStatus(
        control::StatusPageQuery(),
        [&](const control::StatusRequest& request) { return AskForStatus(request, *caller); });
    return status.ok() ? control::StatusPage(*status)
                       : absl::StrCat(status.status().ToString(), "\n");
  }

  absl::StatusOr<control::DispatcherStatus> AskForStatus(const control::StatusRequest& request,
                                                         const control::Caller& caller) const {
    struct Reply {
      Mutex mu;
      Condition arrived;
      std::optional<absl::StatusOr<control::DispatcherStatus>> status GUARDED_BY(mu);
    };
    auto reply = std::make_shared<Reply>();
    const auto set = [reply](absl::StatusOr<control::DispatcherStatus> status) {
      MutexLock lock(reply->mu);
      reply->status = std::move(status);
      reply->arrived.NotifyAll();
    };
    core_->GetStatus(request, set, caller);
    MutexLock lock(reply->mu);
    if (!reply->arrived.WaitFor(lock, kStatusPatience,
                                [&]() REQUIRES(reply->mu) { return reply->status.has_value(); })) {
      return absl::DeadlineExceededError("the journal does not answer");
    }
    return *reply->status;
  }

  absl::Status StartThreads() {
    ASSIGN_OR_RETURN(sweeper_, StartThread("the sweeps of the dispatcher", [this] { Sweep(); }));
    ASSIGN_OR_RETURN(prober_, StartThread("the dispatcher's probes of workers", [this] {
                       Repeat([this] { core_->ProbeBrokenWorkers(); });
                     }));
    if (config_.auth_file.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(rights_sweeper_, StartThread("the dispatcher's checks of rights", [this] {
                       Repeat([this] { listener_->SweepRights(); });
                     }));
    return absl::OkStatus();
  }

  // Calls `what` at each interval until the server stops or the journal fails.
  void Repeat(const std::function<void()>& what) {
    MutexLock lock(mu_);
    while (!changed_.WaitFor(lock, kInterval,
                             [this]() REQUIRES(mu_) { return stopping_ || !status_.ok(); })) {
      lock.unlock();
      what();
      lock.lock();
    }
  }

  void Sweep() {
    Repeat([this] {
      core_->Sweep();
      listener_->Sweep();
    });
    if (status().ok()) return;
    // No answer to a peer may depend on records that cannot be written.
    listener_->Shutdown();
  }

  const DispatcherConfig config_;
  const control::PageAccess access_{config_};
  const protocol::Broken broken_;

  // Destroyed after the core, whose last callback from the journal may still use these.
  mutable Mutex mu_;
  Condition changed_;
  absl::Status status_ GUARDED_BY(mu_);  // the reason for which the dispatcher stopped by itself
  bool stopping_ GUARDED_BY(mu_) = false;
  bool stopped_ GUARDED_BY(mu_) = false;

  std::unique_ptr<control::Leadership> leadership_;  // null: there are no standbys
  std::unique_ptr<Core> core_;                       // null after the stop; written under mu_
  std::unique_ptr<control::Listener> listener_;
  int port_ = 0;
  std::unique_ptr<PageServer> status_server_;
  Thread sweeper_;
  Thread prober_;
  Thread rights_sweeper_;  // apart, since a slow disk with the auth_file must not delay the sweeps
};

}  // namespace

absl::StatusOr<std::unique_ptr<DispatchServer>> control::StartDispatchServer(
    DispatcherConfig config, protocol::Broken broken) {
  auto server = std::make_unique<Server>(std::move(config), broken);
  RETURN_IF_ERROR(server->Open());
  return server;
}

absl::StatusOr<DeploymentMode> DeploymentModeFromName(std::string_view name) {
  const absl::string_view given(name.data(), name.size());
  if (given.empty()) return DeploymentMode::kUnspecified;
  if (absl::EqualsIgnoreCase(given, "COLOCATED")) return DeploymentMode::kColocated;
  if (absl::EqualsIgnoreCase(given, "REMOTE")) return DeploymentMode::kRemote;
  if (absl::EqualsIgnoreCase(given, "HYBRID")) return DeploymentMode::kHybrid;
  return absl::InvalidArgumentError(
      absl::StrCat("Unrecognized deployment mode: ", given, "; use COLOCATED, REMOTE or HYBRID"));
}

absl::StatusOr<std::unique_ptr<DispatchServer>> DispatchServer::Start(DispatcherConfig config) {
  return control::StartDispatchServer(std::move(config), protocol::Broken::kNone);
}

}  // namespace penstock
