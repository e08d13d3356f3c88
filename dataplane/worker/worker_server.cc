// SPDX-License-Identifier: Apache-2.0
// A worker as one object: the listeners of all transports, its tasks and its agent.
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "control/observe/event_log.h"
#include "control/observe/html.h"
#include "control/observe/metrics.h"
#include "control/observe/page_server.h"
#include "control/observe/refused.h"
#include "control/protocol/host_port.h"
#include "control/settings/server_settings.h"
#include "control/stub/dispatcher_stub.h"
#include "control/stub/this_process.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "control/sync/random.h"
#include "control/sync/thread.h"
#include "dataplane/dataset/expr/python_host.h"
#include "dataplane/dataset/graph/position_versions.h"
#include "dataplane/memory/element_limit.h"
#include "dataplane/memory/usable_memory.h"
#include "dataplane/python/environment.h"
#include "dataplane/python/process_host.h"
#include "dataplane/transfer/library.h"
#include "dataplane/transfer/transport.h"
#include "dataplane/transfer/ucx/settings.h"
#include "dataplane/transfer/ucx/transport.h"
#include "dataplane/worker/agent.h"
#include "dataplane/worker/file_access.h"
#include "dataplane/worker/plugins.h"
#include "dataplane/worker/tasks.h"
#include "dataplane/worker/worker_context.h"
#include "include/status_macros.h"
#include "penstock/server.h"

namespace penstock::worker {
namespace {

constexpr absl::Duration kStopBound = absl::Seconds(5);
constexpr int kMostJobThreads = 1024;
constexpr char kGrpc[] = "grpc";  // always offered, because it works everywhere
constexpr char kGrpcs[] = "grpcs://";
constexpr char kTcp[] = "tcp";

int DefaultPermits() {
  return std::max(1, Cores() / 4);
}

int64_t DefaultWindow() {
  return std::min(UsableMemory() / 8, int64_t{10} << 30);
}

absl::Status Check(const WorkerConfig& config) {
  if (config.dispatcher_address.empty())
    return absl::InvalidArgumentError("a worker needs dispatcher_address, \"host:port\"");
  if (config.protocol != "grpc") {
    return absl::NotFoundError(
        absl::StrCat("No credentials factory has been registered for protocol ", config.protocol,
                     "; known: grpc"));
  }
  if (std::find(config.worker_tags.begin(), config.worker_tags.end(), "") !=
      config.worker_tags.end()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Worker tags cannot be empty. Got tags {", absl::StrJoin(config.worker_tags, ", "), "}"));
  }
  if (config.data_transfer_port < 0 || config.data_transfer_port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("data_transfer_port is ", config.data_transfer_port, ", not in [0, 65535]"));
  }
  if (config.shutdown_quiet_period < absl::ZeroDuration())
    return absl::InvalidArgumentError("shutdown_quiet_period must not be negative");
  if (config.port < 0 || config.port > 65535)
    return absl::InvalidArgumentError(absl::StrCat("port is ", config.port, ", not in [0, 65535]"));
  if (config.metrics_port < -1 || config.metrics_port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("metrics_port is ", config.metrics_port, ", neither in [0, 65535] nor -1"));
  }
  if (config.permits < 0 || config.threads < 0 || config.job_threads < 0 ||
      config.memory_budget_bytes < 0 || config.ram_budget_bytes < 0 ||
      config.buffer_budget_bytes < 0 || config.job_buffer_budget_bytes < 0) {
    return absl::InvalidArgumentError(
        "permits, threads, job_threads, memory_budget_bytes, ram_budget_bytes, buffer_budget_bytes "
        "and "
        "job_buffer_budget_bytes must be 0 or more");
  }
  if (config.job_threads > kMostJobThreads) {
    return absl::InvalidArgumentError(absl::StrCat("job_threads is ", config.job_threads,
                                                   ", but a job has at most ", kMostJobThreads,
                                                   " threads of its own"));
  }
  if (config.python < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "python is ", config.python, ", but it must be a number of processes, or 0 for none"));
  }
  RETURN_IF_ERROR(python_host::CheckVariableNames(config.python_env));
  if (config.cross_trainer_cache_size_bytes < 0)
    return absl::InvalidArgumentError("cross_trainer_cache_size_bytes must be 0 or more");
  if (config.max_loan_bytes < 0 || config.shared_pool_bytes < 0)
    return absl::InvalidArgumentError("max_loan_bytes and shared_pool_bytes must be 0 or more");
  if (config.dispatcher_address.starts_with(kGrpcs) && config.tls.certificate.empty()) {
    return absl::InvalidArgumentError(
        "a worker whose dispatcher is at grpcs:// needs tls_certificate and tls_key: its grpc "
        "links are encrypted too");
  }
  if (config.heartbeat_interval <= absl::ZeroDuration())
    return absl::InvalidArgumentError("heartbeat_interval must be more than 0");
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<PythonHost>> PythonFor(const WorkerConfig& config) {
  if (config.python == 0) {
    return PythonHost::Refusing(
        "this worker runs no functions written in Python; its operator can allow them with the "
        "setting python (penstock worker --python N, or WorkerConfig)");
  }
  return python_host::ProcessHost::Start({.processes = config.python,
                                          .command = {.interpreter = config.python_command,
                                                      .path = config.python_path,
                                                      .variables = config.python_env},
                                          .allowed = config.python_allow});
}

// Returns true if ListenToAll() or ListenToNamed() would offer ucx, provided that ucx can run.
bool OffersUcx(const WorkerConfig& config) {
  const std::string& named = config.data_transfer_protocol;
  if (named.empty() || named == "auto") return config.tls.certificate.empty();
  return transfer::ucx::IsNamed(named, config.fallback);
}

absl::StatusOr<int> PortOf(const std::string& address) {
  int port = 0;
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port))
    return absl::InternalError(absl::StrCat("'", address, "' does not end in a port"));
  return port;
}

bool StaysOnTheHost(const std::string& protocol) {
  return protocol == "local" || protocol == "shm";
}

// Returns the address under which clients reach the bound port.
std::string AddressFor(const WorkerConfig& config, int port) {
  if (!config.worker_address.empty())
    return absl::StrReplaceAll(config.worker_address, {{"%port%", absl::StrCat(port)}});
  std::string host = config.host;
  if (char name[256]; (host == "0.0.0.0" || host == "::" || host == "[::]") &&
                      gethostname(name, sizeof name) == 0) {
    host = name;
  }
  return control::JoinHostPort(host, port);
}

// Returns the address under which clients reach the port of a protocol that has a port of its own.
std::string DataAddressFor(const WorkerConfig& config, int port) {
  if (config.data_transfer_address.empty()) return AddressFor(config, port);
  return absl::StrReplaceAll(config.data_transfer_address, {{"%dts_port%", absl::StrCat(port)}});
}

// Returns the label of refusals; nullopt for `local`, and for transports outside the tree.
std::optional<Port> PortNamed(const std::string& protocol) {
  if (protocol == kGrpc) return Port::kGrpc;
  if (protocol == kTcp) return Port::kTcp;
  if (protocol == "ucx") return Port::kUcx;
  if (protocol == "shm") return Port::kShm;
  return std::nullopt;
}

class Server final : public WorkerServer {
 public:
  explicit Server(WorkerConfig config) : config_(std::move(config)) {}
  ~Server() override { Stop(); }

  absl::Status Open();

  int port() const override { return port_; }
  std::string address() const override { return address_; }
  int metrics_port() const override {
    return status_server_ == nullptr ? -1 : status_server_->port();
  }
  int NumTasks() const override { return tasks_->size(); }
  absl::Status Drain(absl::Duration bound) override {
    absl::Status drained = agent_->Drain(BootTime() + bound);
    Stop();
    return drained;
  }
  void Stop() override;
  absl::Status status() const override { return agent_->status(); }
  void Join() override { agent_->AwaitOver(); }

 private:
  std::string StatusPage() const;
  absl::Status ServePages();
  absl::Status Listen();
  absl::Status ListenToNamed();
  absl::Status ListenToAll();
  absl::Status Listen(const std::string& protocol, int preference = 0);

  const WorkerConfig config_;
  int port_ = 0;
  std::string address_;
  std::unique_ptr<control::DispatcherStub> stub_;
  std::shared_ptr<PythonHost> python_;
  std::shared_ptr<WorkerContext> context_;
  std::shared_ptr<Tasks> tasks_;
  std::vector<control::TransferOffer> offers_;
  std::vector<std::unique_ptr<transfer::Listener>> listeners_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<PageServer> status_server_;
  Mutex stop_mu_;  // held by Stop(), so that one runs at a time
  bool stopped_ GUARDED_BY(stop_mu_) = false;
};

absl::Status Server::Open() {
  RETURN_IF_ERROR(Check(config_));
  RETURN_IF_ERROR(transfer::ucx::SetLanes(config_.ucx_lanes));
  if (OffersUcx(config_)) transfer::ucx::OpenEarly();
  ASSIGN_OR_RETURN(stub_, control::DispatcherStub::Make(config_.dispatcher_address, config_.tls));
  ASSIGN_OR_RETURN(std::shared_ptr<const FileAccess> access, FileAccess::Of(config_));
  ASSIGN_OR_RETURN(python_, PythonFor(config_));
  if (config_.memory_budget_bytes > 0) LimitElementBytes(config_.memory_budget_bytes);
  context_ = std::make_shared<WorkerContext>(WorkerContextOptions{
      .permits = config_.permits > 0 ? config_.permits : DefaultPermits(),
      .threads = config_.threads,
      .job_threads = config_.job_threads,
      .budget_bytes =
          config_.memory_budget_bytes > 0 ? config_.memory_budget_bytes : UsableMemory() / 2,
      .ram_budget_bytes = config_.ram_budget_bytes,
      .buffer_budget_bytes =
          config_.buffer_budget_bytes > 0 ? config_.buffer_budget_bytes : UsableMemory() / 4 * 3,
      .job_buffer_budget_bytes = config_.job_buffer_budget_bytes,
      .window_bytes = config_.cross_trainer_cache_size_bytes > 0
                          ? config_.cross_trainer_cache_size_bytes
                          : DefaultWindow(),
      .shared_slots = {.max_loan_bytes = config_.max_loan_bytes > 0 ? config_.max_loan_bytes
                                                                    : SharedSlots().max_loan_bytes,
                       .pool_bytes = config_.shared_pool_bytes},
      .python = python_,
      .access = std::move(access),
      .fetch =
          [stub = stub_.get()](std::string_view id, uint64_t edition) {
            return stub->GetDataset(id, edition, control::CallOptions());
          },
      // Bookmarks are due by this clock, because it never jumps when the time of day is set.
      .now =
          [] {
            return absl::UnixEpoch() + absl::FromChrono(SteadyClock::now().time_since_epoch());
          }});
  tasks_ = std::make_shared<Tasks>(context_);
  RETURN_IF_ERROR(transfer::LoadTransports(config_.transports));
  const std::vector<std::string>& allowed =
      config_.plugin_allow.empty() && config_.allowed_plugins.given().has_value()
          ? *config_.allowed_plugins.given()
          : config_.plugin_allow;
  RETURN_IF_ERROR(LoadPlugins(config_.plugins, allowed));
  RETURN_IF_ERROR(Listen());
  if (config_.metrics_port >= 0) {
    RETURN_IF_ERROR(ServePages());
  }
  control::WorkerHello hello;
  hello.worker = WorkerId(RandomId());
  hello.address = address_;
  hello.offers = offers_;
  hello.tags = config_.worker_tags;
  hello.permits = context_->permits.count();
  hello.process = control::ThisProcess();
  hello.release = control::ThisRelease();
  hello.reads = ReadablePositions();
  ASSIGN_OR_RETURN(agent_,
                   Agent::Start(stub_.get(), context_, tasks_.get(),
                                AgentOptions{.hello = std::move(hello),
                                             .heartbeat_interval = config_.heartbeat_interval,
                                             .dispatcher_timeout = config_.dispatcher_timeout}));
  return agent_->AwaitWelcome();
}

// A worker knows no principals, so in a cluster that has them only metrics_token admits to its
// pages.
absl::Status Server::ServePages() {
  ASSIGN_OR_RETURN(
      status_server_,
      PageServer::StartFor(
          control::WithoutBrackets(PagesHost(config_)), config_.metrics_port,
          {{"/", [this](const std::string& /*viewer*/) { return StatusPage(); }},
           {"/metrics", [](const std::string& /*viewer*/) { return ProcessMetrics().Render(); }}},
          AdmitToken(config_.metrics_token, AsksWho(config_))));
  return absl::OkStatus();
}

absl::Status Server::Listen() {
  RETURN_IF_ERROR(Listen(kGrpc));
  const std::string& named = config_.data_transfer_protocol;
  return named.empty() || named == "auto" ? ListenToAll() : ListenToNamed();
}

// A protocol that cannot run on this machine is not offered.
absl::Status Server::ListenToAll() {
  for (const std::string& protocol : transfer::TransportNames()) {
    if (protocol == kGrpc) continue;
    const bool in_the_open = !config_.tls.certificate.empty() && !StaysOnTheHost(protocol);
    absl::Status status = in_the_open ? absl::NotFoundError(
                                            "TLS is on, and this protocol is not encrypted: name "
                                            "it in data_transfer_protocol or fallback to offer it")
                                      : Listen(protocol);
    if (status.ok()) continue;
    if (!absl::IsNotFound(status)) return status;
    StderrEventLog()->Write(
        {"not_offered", {{"protocol", protocol}, {"reason", std::string(status.message())}}});
  }
  return absl::OkStatus();
}

absl::Status Server::ListenToNamed() {
  const std::string& named = config_.data_transfer_protocol;
  std::vector<std::string> names = {named};
  names.insert(names.end(), config_.fallback.begin(), config_.fallback.end());
  std::vector<std::string> refused;
  std::string first_offered;
  for (int preference = 1; const std::string& protocol : names) {
    absl::Status status = Listen(protocol, preference++);
    if (!status.ok() && (!absl::IsNotFound(status) || names.size() == 1)) return status;
    if (!status.ok()) refused.push_back(absl::StrCat(protocol, ": ", status.message()));
    if (status.ok() && first_offered.empty()) first_offered = protocol;
  }
  if (first_offered.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no protocol in data_transfer_protocol or fallback can run ",
                     "here: ", absl::StrJoin(refused, ", ")));
  }
  if (first_offered != named) {
    StderrEventLog()->Write(
        {"fell_back",
         {{"from", named}, {"to", first_offered}, {"reason", absl::StrJoin(refused, ", ")}}});
  }
  return absl::OkStatus();
}

absl::Status Server::Listen(const std::string& protocol, int preference) {
  for (control::TransferOffer& offer : offers_) {
    if (offer.protocol != protocol) continue;
    if (offer.preference == 0) offer.preference = preference;
    return absl::OkStatus();
  }
  const bool is_grpc = protocol == kGrpc;
  ASSIGN_OR_RETURN(transfer::Transport * transport, transfer::FindTransport(protocol));
  ASSIGN_OR_RETURN(
      std::unique_ptr<transfer::Listener> listener,
      transport->Listen(
          {.host = config_.host,
           .port = is_grpc ? config_.port : (protocol == kTcp ? config_.data_transfer_port : 0),
           .tls = config_.tls},
          [tasks = tasks_, port = PortNamed(protocol)](const transfer::Hello& hello,
                                                       std::shared_ptr<transfer::SendLink> link) {
            auto accepted = tasks->Accept(hello, std::move(link));
            if (port.has_value() && absl::IsPermissionDenied(accepted.status())) {
              CountRefused(*port, Refused::kUnauthenticated);
            }
            return accepted;
          }));
  control::TransferOffer offer{protocol, listener->address(), listener->compatibility(),
                               preference};
  if (is_grpc) {
    ASSIGN_OR_RETURN(port_, PortOf(offer.address));
    address_ = AddressFor(config_, port_);
    offer.address = config_.tls.certificate.empty() ? address_ : absl::StrCat(kGrpcs, address_);
  } else if (protocol == kTcp) {
    ASSIGN_OR_RETURN(const int port, PortOf(offer.address));
    offer.address = DataAddressFor(config_, port);
  }
  offers_.push_back(std::move(offer));
  listeners_.push_back(std::move(listener));
  return absl::OkStatus();
}

std::string Server::StatusPage() const {
  std::vector<std::vector<std::string>> held;
  for (const control::PlacedPartition& of : tasks_->held()) {
    held.push_back({absl::StrCat(of.iteration.value()), absl::StrCat(of.partition.value()),
                    absl::StrCat(of.placement.value())});
  }
  std::vector<std::vector<std::string>> offers;
  for (const control::TransferOffer& offer : offers_) {
    offers.push_back({offer.protocol, offer.address});
  }
  std::vector<std::vector<std::string>> nodes;
  for (const control::DatasetWork& work : context_->definitions.Work()) {
    for (const NodeStats& node : work.stats.nodes) {
      nodes.push_back({work.dataset_id, node.node, absl::StrCat(node.elements),
                       absl::FormatDuration(absl::Trunc(node.busy, absl::Milliseconds(1))),
                       absl::FormatDuration(absl::Trunc(node.waiting, absl::Milliseconds(1))),
                       absl::StrCat(node.parallelism)});
    }
  }
  return HtmlPage(
      absl::StrCat("Penstock worker ", address_),
      absl::StrCat(
          "<p>", context_->permits.count(), " permits</p>\n",
          HtmlTable("Partitions", {"iteration", "partition", "placement"}, held),
          HtmlTable("What the nodes did",
                    {"dataset", "node", "elements", "busy", "waiting", "at a time"}, nodes),
          HtmlTable("Offers", {"protocol", "address"}, offers), HtmlOfMetrics()));
}

void Server::Stop() {
  MutexLock lock(stop_mu_);
  if (std::exchange(stopped_, true)) return;
  status_server_.reset();  // its page reads objects that are destroyed next
  Sleep(config_.shutdown_quiet_period);
  if (agent_ != nullptr) agent_->Stop();
  if (stub_ != nullptr) stub_->Stop();
  if (tasks_ != nullptr) tasks_->Stop(BootTime() + kStopBound).IgnoreError();
  if (python_ != nullptr) python_->Stop();  // no thread needs results of its calls any more
  listeners_.clear();
}

}  // namespace
}  // namespace penstock::worker

namespace penstock {

absl::StatusOr<std::unique_ptr<WorkerServer>> WorkerServer::Start(WorkerConfig config) {
  auto server = std::make_unique<worker::Server>(std::move(config));
  RETURN_IF_ERROR(server->Open());
  return server;
}

}  // namespace penstock
