// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/world/etcd.h"

#include <algorithm>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "control/etcd/etcd_messages.h"
#include "control/sync/clock.h"
#include "control/sync/simulation.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"
#include "penstock/check.h"
#include "tools/simulator/world/wire.h"

namespace penstock::simulator {
namespace {

using control::EtcdClient;
using control::IsUncertain;

constexpr absl::Duration kPause = absl::Milliseconds(50);  // as in control/etcd/etcd_client.cc

struct Frame {
  uint64_t number = 0;  // of the call
  std::string head;     // the method, or the code
  std::string body;
};

std::string ToBytes(const Frame& frame) {
  return absl::StrCat(frame.number, " ", frame.head, " ", frame.body);
}

Frame FromBytes(const std::string& bytes) {
  const std::vector<std::string> parts = absl::StrSplit(bytes, absl::MaxSplits(' ', 2));
  Frame frame{.head = parts.at(1), .body = parts.at(2)};
  PENSTOCK_CHECK(absl::SimpleAtoi(parts[0], &frame.number));
  return frame;
}

}  // namespace

// --- The port ---------------------------------------------------------------------

class EtcdPort::Visit final : public ConnectionEvents {
 public:
  Visit(EtcdPort& port, uint64_t number, std::shared_ptr<Connection> connection)
      : port_(port), number_(number), connection_(std::move(connection)) {}

  void OnMessage(std::string message) override {
    const Frame asked = FromBytes(message);
    if (asked.head == "Watch") {
      const auto watch = ParseBytes<etcdserverpb::WatchRequest>(asked.body);
      if (watch.ok()) watches_[asked.number] = watch->create_request();
    } else {
      const absl::StatusOr<std::string> answer = AnswerTo(asked);
      Send({asked.number, absl::StrCat(static_cast<int>(answer.status().code())),
            answer.ok() ? *answer : std::string(answer.status().message())});
    }
    port_.AnswerWatches();
  }
  void OnClosed(const absl::Status&) override { port_.visits_.erase(number_); }

  void AnswerWatches() {
    for (auto watch = watches_.begin(); watch != watches_.end();) {
      const auto answer = port_.state_.Watch(watch->second);
      if (answer.has_value()) Send({watch->first, "0", answer->SerializeAsString()});
      watch = answer.has_value() ? watches_.erase(watch) : std::next(watch);
    }
  }
  // Waits until no event runs.
  void Break() {
    connection_->Stop();
    connection_->Close(absl::UnavailableError("etcd is stopping"));
  }

 private:
  // Answers with what `carry_out` returns for the request.
  template <class Request, class CarryOut>
  absl::StatusOr<std::string> Answer(const std::string& bytes, CarryOut carry_out) {
    ASSIGN_OR_RETURN(const Request request, ParseBytes<Request>(bytes));
    ASSIGN_OR_RETURN(const auto answer, carry_out(request));
    return answer.SerializeAsString();
  }

  absl::StatusOr<std::string> AnswerTo(const Frame& asked) {
    EtcdState& state = port_.state_;
    const absl::Time now = BootTime();
    if (asked.head == "Range") {
      return Answer<etcdserverpb::RangeRequest>(
          asked.body, [&](const auto& r) -> absl::StatusOr<etcdserverpb::RangeResponse> {
            return state.Range(r);
          });
    }
    if (asked.head == "Txn") {
      return Answer<etcdserverpb::TxnRequest>(asked.body,
                                              [&](const auto& r) { return state.Txn(r); });
    }
    if (asked.head == "Compact") {
      return Answer<etcdserverpb::CompactionRequest>(
          asked.body, [&](const auto& r) { return state.Compact(r); });
    }
    if (asked.head == "LeaseGrant") {
      return Answer<etcdserverpb::LeaseGrantRequest>(
          asked.body, [&](const auto& r) { return state.Grant(r, now); });
    }
    if (asked.head == "LeaseKeepAlive") {
      return Answer<etcdserverpb::LeaseKeepAliveRequest>(
          asked.body, [&](const auto& r) -> absl::StatusOr<etcdserverpb::LeaseKeepAliveResponse> {
            return state.KeepAlive(r, now);
          });
    }
    if (asked.head == "LeaseRevoke") {
      return Answer<etcdserverpb::LeaseRevokeRequest>(
          asked.body, [&](const auto& r) { return state.Revoke(r); });
    }
    return absl::UnimplementedError(absl::StrCat("unknown method ", asked.head));
  }

  void Send(const Frame& frame) { connection_->Send(ToBytes(frame)); }

  EtcdPort& port_;
  const uint64_t number_;
  const std::shared_ptr<Connection> connection_;
  std::map<uint64_t, etcdserverpb::WatchCreateRequest> watches_;  // by the number of the call
};

absl::StatusOr<std::unique_ptr<EtcdPort>> EtcdPort::Open(Network& network,
                                                         const std::shared_ptr<Process>& at,
                                                         EtcdState& state) {
  std::unique_ptr<EtcdPort> port(new EtcdPort(state));
  ASSIGN_OR_RETURN(
      port->acceptor_,
      network.Listen(at, kEtcdAddress, [port = port.get()](std::shared_ptr<Connection> connection) {
        const uint64_t number = ++port->last_visit_;
        auto visit = std::make_shared<Visit>(*port, number, std::move(connection));
        port->visits_.emplace(number, visit);
        return visit;
      }));
  return port;
}

EtcdPort::~EtcdPort() {
  acceptor_ = nullptr;
  while (!visits_.empty()) visits_.extract(visits_.begin()).mapped()->Break();
}

void EtcdPort::EndLeases() {
  state_.EndLeases(BootTime());
  AnswerWatches();
}

void EtcdPort::AnswerWatches() {
  for (const auto& [number, visit] : visits_) visit->AnswerWatches();
}

// --- The client -------------------------------------------------------------------

namespace {

// A connection, and the calls that wait for answers on it. Fibers switch only at waits, so there is
// no lock.
class Channel final : public ConnectionEvents {
 public:
  static std::shared_ptr<Channel> Open(Network& network) {
    auto channel = std::make_shared<Channel>();
    channel->connection_ = network.Connect(kEtcdAddress, channel);
    return channel;
  }
  // The connection holds the channel until it is over.
  void Close() { connection_ = nullptr; }
  bool over() const { return closed_.has_value(); }

  void OnMessage(std::string message) override {
    Frame frame = FromBytes(message);
    const auto call = calls_.find(frame.number);
    if (call == calls_.end()) return;  // it waits no more
    int code = 0;
    PENSTOCK_CHECK(absl::SimpleAtoi(frame.head, &code));
    if (code == 0) {
      call->second = std::move(frame.body);
    } else {
      call->second = absl::Status(static_cast<absl::StatusCode>(code), frame.body);
    }
    PresentSimulation()->Notify(this, /*all=*/true);
  }
  void OnClosed(const absl::Status& reason) override {
    closed_ = reason.ok() ? absl::UnavailableError("etcd closed the connection") : reason;
    PresentSimulation()->Notify(this, /*all=*/true);
  }

  absl::StatusOr<std::string> Call(const std::string& method, const std::string& request,
                                   absl::Duration bound, const std::stop_token& stop) {
    const uint64_t number = ++last_call_;
    connection_->Send(ToBytes({number, method, request}));
    absl::StatusOr<std::string> answer = Wait(number, BootTime() + bound, stop);
    calls_.erase(number);
    return answer;
  }

 private:
  absl::StatusOr<std::string> Wait(uint64_t number, absl::Time deadline,
                                   const std::stop_token& stop) {
    Simulation& simulation = *PresentSimulation();
    const std::stop_callback wakes(stop, [&] { simulation.Notify(this, /*all=*/true); });
    const std::optional<absl::StatusOr<std::string>>& answer = calls_[number];
    while (!answer.has_value()) {
      if (stop.stop_requested()) return absl::CancelledError("the client of etcd was stopped");
      if (over()) return *closed_;
      if (BootTime() >= deadline) return absl::DeadlineExceededError("no answer");
      simulation.Wait(this, deadline);
    }
    return *answer;
  }

  std::unique_ptr<Connection> connection_;
  std::optional<absl::Status> closed_;
  uint64_t last_call_ = 0;
  std::map<uint64_t, std::optional<absl::StatusOr<std::string>>> calls_;  // that wait, by number
};

class SimEtcdClient final : public EtcdClient {
 public:
  SimEtcdClient(Network& network, std::shared_ptr<Process> process, absl::Duration patience)
      : network_(network), process_(std::move(process)), patience_(patience) {}
  ~SimEtcdClient() override {
    if (channel_ != nullptr) channel_->Close();
  }

  void Stop() override { stop_.request_stop(); }

  absl::StatusOr<control::EtcdFound> Get(const control::EtcdGet& get,
                                         absl::Duration bound) override {
    etcdserverpb::RangeRequest request;
    ToEtcd(get, &request);
    ASSIGN_OR_RETURN(auto answer, Repeat<etcdserverpb::RangeResponse>("Range", request, bound));
    control::EtcdFound found{.more = answer.more(), .revision = answer.header().revision()};
    AppendKeys(answer, found.keys);
    return found;
  }

  absl::StatusOr<control::EtcdTxnAnswer> Commit(const control::EtcdTxn& txn) override {
    ASSIGN_OR_RETURN(auto answer,
                     TryOnce<etcdserverpb::TxnResponse>("Txn", ToEtcd(txn), patience_));
    return control::FromEtcd(answer);
  }

  absl::Status Compact(int64_t revision, absl::Duration bound) override {
    etcdserverpb::CompactionRequest request;
    request.set_revision(revision);
    return Repeat<etcdserverpb::CompactionResponse>("Compact", request, bound).status();
  }

  absl::StatusOr<control::EtcdLease> GrantLease(absl::Duration ttl, absl::Duration bound) override {
    etcdserverpb::LeaseGrantRequest request;
    request.set_ttl(absl::ToInt64Seconds(absl::Ceil(ttl, absl::Seconds(1))));
    ASSIGN_OR_RETURN(const auto answer,
                     Repeat<etcdserverpb::LeaseGrantResponse>("LeaseGrant", request, bound));
    return control::EtcdLease{.id = answer.id(), .ttl = absl::Seconds(answer.ttl())};
  }

  absl::Status KeepAlive(int64_t lease, absl::Duration bound) override {
    etcdserverpb::LeaseKeepAliveRequest request;
    request.set_id(lease);
    ASSIGN_OR_RETURN(const auto answer, Repeat<etcdserverpb::LeaseKeepAliveResponse>(
                                            "LeaseKeepAlive", request, bound));
    if (answer.ttl() > 0) return absl::OkStatus();
    return absl::NotFoundError("the lease in etcd has ended");
  }

  absl::Status Revoke(int64_t lease, absl::Duration bound) override {
    etcdserverpb::LeaseRevokeRequest request;
    request.set_id(lease);
    const absl::Status revoked =
        Repeat<etcdserverpb::LeaseRevokeResponse>("LeaseRevoke", request, bound).status();
    return absl::IsNotFound(revoked) ? absl::OkStatus() : revoked;
  }

  absl::Status AwaitDeletion(const std::string& key, int64_t revision,
                             absl::Duration bound) override {
    etcdserverpb::WatchRequest request;
    request.mutable_create_request()->set_key(key);
    request.mutable_create_request()->set_start_revision(revision + 1);
    return TryOnce<etcdserverpb::WatchResponse>("Watch", request, bound).status();
  }

 private:
  // Tries until `bound` is over or an answer is certain.
  template <class Answer, class Request>
  absl::StatusOr<Answer> Repeat(const std::string& method, const Request& request,
                                absl::Duration bound) {
    const absl::Time end = BootTime() + bound;
    while (true) {
      absl::StatusOr<Answer> answer =
          TryOnce<Answer>(method, request, std::min(patience_, end - BootTime()));
      if (!IsUncertain(answer.status()) || absl::IsCancelled(answer.status())) return answer;
      if (BootTime() + kPause >= end) return answer;
      Sleep(kPause, stop_.get_token());
    }
  }

  template <class Answer, class Request>
  absl::StatusOr<Answer> TryOnce(const std::string& method, const Request& request,
                                 absl::Duration bound) {
    if (stop_.stop_requested() || !process_->alive()) {
      return absl::CancelledError("the client of etcd was stopped");
    }
    if (channel_ == nullptr || channel_->over()) channel_ = Channel::Open(network_);
    const std::shared_ptr<Channel> channel = channel_;
    const absl::StatusOr<std::string> bytes =
        channel->Call(method, request.SerializeAsString(), bound, stop_.get_token());
    if (!bytes.ok()) return Annotate(bytes.status(), "etcd ", kEtcdAddress);
    return ParseBytes<Answer>(*bytes);
  }

  Network& network_;
  const std::shared_ptr<Process> process_;
  const absl::Duration patience_;
  std::stop_source stop_;
  std::shared_ptr<Channel> channel_;  // the latest; null: none yet
};

}  // namespace

std::shared_ptr<EtcdClient> MakeEtcdClient(Network& network, std::shared_ptr<Process> process,
                                           absl::Duration patience) {
  return std::make_shared<SimEtcdClient>(network, std::move(process), patience);
}

}  // namespace penstock::simulator
