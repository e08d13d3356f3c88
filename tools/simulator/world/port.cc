// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/world/port.h"

#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/server/upgrade.h"
#include "control/proto/messages_proto.h"
#include "control/proto/reading_proto.h"
#include "include/status_macros.h"
#include "tools/simulator/world/wire.h"

namespace penstock::simulator {
namespace {

using control::Core;
using control::FromWire;
using control::ToWire;
namespace wire = control::wire;

// The dispatcher's end of a call. It is kept by what will answer it.
class Call {
 public:
  Call(std::shared_ptr<Connection> connection, std::string method, TrafficObserver* observer)
      : connection_(std::move(connection)), method_(std::move(method)), observer_(observer) {
    if (observer_ != nullptr) observer_->OnCall(method_);
  }
  template <class Wire>
  void Answer(const Wire& answer) const {
    connection_->Send(answer.SerializeAsString());
    connection_->Close(absl::OkStatus());
  }
  void Fail(const absl::Status& status) const {
    if (observer_ != nullptr) observer_->OnRefused(method_, status);
    connection_->Close(status);
  }

 private:
  const std::shared_ptr<Connection> connection_;
  const std::string method_;
  TrafficObserver* const observer_;
};
using Asked = std::shared_ptr<const Call>;

// --- Calls ------------------------------------------------------------------------

template <class Wire, class Answer>
Wire Convert(const Answer& answer) {
  Wire wire;
  ToWire(answer, &wire);
  return wire;
}
template <class Wire>
Wire Convert(const std::shared_ptr<const control::DatasetRecord>& dataset) {
  return Convert<Wire>(
      control::GetDatasetAnswer{dataset->id, dataset->definition, dataset->summary});
}

// Answers a call with the core's answer, as `Wire`, or with its status.
template <class Answer, class Wire>
Core::Done<Answer> AnswerTo(const Asked& call) {
  return [call](const absl::StatusOr<Answer>& answer) {
    if (!answer.ok()) return call->Fail(answer.status());
    call->Answer(Convert<Wire>(*answer));
  };
}

Core::DoneEmpty FinishOf(const Asked& call) {
  return [call](const absl::Status& status) {
    if (!status.ok()) return call->Fail(status);
    call->Answer(wire::Empty());
  };
}

// A method that the dispatcher answers once.
using Method = std::function<void(Core&, const std::string& request, const Asked& call)>;

// Calls handle(core, request, call) with the request as Protobuf's message.
template <class Wire, class Handle>
Method TakesMessage(Handle handle) {
  return [handle](Core& core, const std::string& bytes, const Asked& call) {
    const absl::StatusOr<Wire> request = ParseBytes<Wire>(bytes);
    if (!request.ok()) return call->Fail(request.status());
    handle(core, *request, call);
  };
}

// Does the same with the request as a plain value.
template <class Wire, class Handle>
Method TakesValue(Handle handle) {
  return TakesMessage<Wire>([handle](Core& core, const Wire& wire, const Asked& call) {
    const auto request = FromWire(wire);
    if (!request.ok()) return call->Fail(request.status());
    handle(core, *request, call);
  });
}

std::map<std::string, Method> MethodsOfDatasets() {
  return {
      {"GetOrRegisterDataset",
       TakesValue<wire::RegisterDatasetRequest>(
           [](Core& core, const control::RegisterDatasetRequest& request, const Asked& call) {
             core.RegisterDataset(
                 request,
                 AnswerTo<control::RegisterDatasetAnswer, wire::RegisterDatasetAnswer>(call));
           })},
      {"GetDataset",
       TakesMessage<wire::DatasetRequest>([](Core& core, const wire::DatasetRequest& request,
                                             const Asked& call) {
         core.GetDataset(
             request.dataset_id(), request.edition(),
             AnswerTo<std::shared_ptr<const control::DatasetRecord>, wire::GetDatasetAnswer>(call));
       })},
      {"UnregisterDataset",
       TakesMessage<wire::DatasetRequest>(
           [](Core& core, const wire::DatasetRequest& request, const Asked& call) {
             core.UnregisterDataset(request.dataset_id(), FinishOf(call));
           })},
  };
}

std::map<std::string, Method> MethodsOfJobs() {
  return {
      {"GetOrCreateJob",
       TakesValue<wire::GetOrCreateJobRequest>(
           [](Core& core, const control::GetOrCreateJobRequest& request, const Asked& call) {
             core.GetOrCreateJob(request, AnswerTo<control::JobAnswer, wire::JobAnswer>(call));
           })},
      {"RestoreJob",
       TakesValue<wire::RestoreJobRequest>(
           [](Core& core, const control::RestoreJobRequest& request, const Asked& call) {
             core.RestoreJob(request, AnswerTo<control::JobAnswer, wire::JobAnswer>(call));
           })},
      {"GetReading",
       TakesValue<wire::GetReadingRequest>([](Core& core, const control::GetReadingRequest& request,
                                              const Asked& call) {
         core.GetReading(request, AnswerTo<control::SavedRepetition, wire::SavedRepetition>(call));
       })},
      {"CancelJob", TakesMessage<wire::JobRequest>(
                        [](Core& core, const wire::JobRequest& request, const Asked& call) {
                          core.CancelJob(request.job(), FinishOf(call));
                        })},
      {"RemoveJob", TakesMessage<wire::JobRequest>(
                        [](Core& core, const wire::JobRequest& request, const Asked& call) {
                          core.RemoveJob(request.job(), FinishOf(call));
                        })},
  };
}

std::map<std::string, Method> MethodsOfDispatcher() {
  return {
      {"GetVersion", TakesMessage<wire::VersionRequest>(
                         [](Core&, const wire::VersionRequest&, const Asked& call) {
                           call->Answer(Convert<wire::VersionRange>(control::VersionRange()));
                         })},
      {"GetStatus",
       TakesValue<wire::StatusRequest>([](Core& core, const control::StatusRequest& request,
                                          const Asked& call) {
         core.GetStatus(request, AnswerTo<control::DispatcherStatus, wire::DispatcherStatus>(call));
       })},
      {"FinaliseUpgrade",
       TakesMessage<wire::Empty>([](Core& core, const wire::Empty&, const Asked& call) {
         control::FinaliseUpgrade(core, FinishOf(call), control::Caller());
       })},
  };
}

const std::map<std::string, Method>& AllMethods() {
  static const std::map<std::string, Method>& methods = *[] {
    auto* all = new std::map<std::string, Method>(MethodsOfDispatcher());
    all->merge(MethodsOfDatasets());
    all->merge(MethodsOfJobs());
    return all;
  }();
  return methods;
}

// Returns null if there is no such method.
const Method* FindMethod(const std::string& name) {
  const auto found = AllMethods().find(name);
  return found == AllMethods().end() ? nullptr : &found->second;
}

// Waits for the request of a call.
class CallEvents final : public ConnectionEvents {
 public:
  CallEvents(Core* core, const Method& method, Asked call)
      : core_(core), method_(method), call_(std::move(call)) {}
  void OnMessage(std::string message) override { method_(*core_, message, call_); }
  void OnClosed(const absl::Status&) override {}

 private:
  Core* const core_;
  const Method& method_;
  const Asked call_;
};

// --- Streams ----------------------------------------------------------------------

// A stream of a peer, and the core's sending end of it. The core may keep it longer than the
// connection.
template <class Up, class Down, class WireUp, class WireDown, class Peer>
class Stream final : public ConnectionEvents, public control::StreamWriter<Down> {
 public:
  using Opened = std::shared_ptr<Peer> (Core::*)(std::shared_ptr<control::StreamWriter<Down>>,
                                                 control::Caller);

  static std::shared_ptr<Stream> Open(Core* core, Opened open,
                                      std::shared_ptr<Connection> connection,
                                      TrafficObserver* observer) {
    auto stream = std::make_shared<Stream>(core, std::move(connection), observer);
    stream->peer_ = (core->*open)(stream, control::Caller());
    return stream;
  }
  Stream(Core* core, std::shared_ptr<Connection> connection, TrafficObserver* observer)
      : core_(core), observer_(observer), connection_(std::move(connection)) {}

  // --- From the core ---
  void Send(Down message, uint64_t sequence) override { Transmit(message, sequence); }
  void SendAll(const control::MessageBatch<Down>& messages, uint64_t sequence) override {
    for (const auto& message : messages) Transmit(*message, sequence);
  }
  void Finish(const absl::Status& status) override {
    if (connection_ == nullptr) return;
    if (observer_ != nullptr && !status.ok()) {
      observer_->OnRefused(absl::StrCat("stream of ", WireUp::descriptor()->name()), status);
    }
    connection_->Close(status);
  }

  // --- From the peer ---
  void OnMessage(std::string bytes) override {
    if (is_unreadable_) return;
    WireUp wire;
    absl::StatusOr<std::optional<Up>> message = ReadBytes<Up>(bytes, &wire);
    if (!message.ok()) {  // the core ends the stream
      is_unreadable_ = true;
      return core_->OnUnreadable(peer_, message.status());
    }
    if (!message->has_value()) return;
    if (observer_ != nullptr) observer_->OnMessage(wire);
    core_->OnMessage(peer_, **std::move(message));
  }
  void OnClosed(const absl::Status&) override {
    if (std::exchange(connection_, nullptr) == nullptr) return;
    core_->OnClosed(peer_);
    peer_ = nullptr;  // it keeps this stream
  }

 private:
  void Transmit(const Down& message, uint64_t sequence) {
    if (connection_ == nullptr) return;
    WireDown wire;
    ToWire(message, &wire);
    if (observer_ != nullptr) observer_->OnMessage(wire);
    wire.set_sequence(sequence);
    connection_->Send(wire.SerializeAsString());
  }

  Core* const core_;
  TrafficObserver* const observer_;
  std::shared_ptr<Connection> connection_;  // null once the connection is closed
  std::shared_ptr<Peer> peer_;
  bool is_unreadable_ = false;
};

using ClientStream = Stream<control::ClientUp, control::ClientDown, wire::ClientUp,
                            wire::ClientDown, control::ClientPeer>;
using WorkerStream = Stream<control::WorkerUp, control::WorkerDown, wire::WorkerUp,
                            wire::WorkerDown, control::WorkerPeer>;

// Returns null if there is no such method.
std::shared_ptr<ConnectionEvents> Begin(Core* core, const std::string& name,
                                        const std::shared_ptr<Connection>& connection,
                                        TrafficObserver* observer) {
  if (name == "ClientSession") {
    return ClientStream::Open(core, &Core::OpenClient, connection, observer);
  }
  if (name == "WorkerSession") {
    return WorkerStream::Open(core, &Core::OpenWorker, connection, observer);
  }
  const Method* method = FindMethod(name);
  if (method == nullptr) return nullptr;
  return std::make_shared<CallEvents>(core, *method,
                                      std::make_shared<const Call>(connection, name, observer));
}

}  // namespace

// A connection. Its first message says what it is.
class Port::Visit final : public ConnectionEvents {
 public:
  Visit(Port& port, uint64_t number, std::shared_ptr<Connection> connection)
      : port_(port), number_(number), connection_(std::move(connection)) {}

  void OnMessage(std::string message) override {
    if (events_ != nullptr) return events_->OnMessage(std::move(message));
    events_ = Begin(port_.core_, message, connection_, port_.observer_);
    if (events_ != nullptr) return;
    connection_->Close(
        absl::UnimplementedError(absl::StrCat("a Penstock dispatcher has no method ", message)));
  }
  void OnClosed(const absl::Status& reason) override {
    if (events_ != nullptr) events_->OnClosed(reason);
    port_.visits_.erase(number_);
  }
  // Waits until no event runs.
  void Break() {
    connection_->Stop();
    const absl::Status stopping = absl::UnavailableError("the dispatcher is stopping");
    if (events_ != nullptr) events_->OnClosed(stopping);
    connection_->Close(stopping);
  }

 private:
  Port& port_;
  const uint64_t number_;
  const std::shared_ptr<Connection> connection_;
  std::shared_ptr<ConnectionEvents> events_;  // of the call or stream; null: the method is unknown
};

absl::StatusOr<std::unique_ptr<Port>> Port::Open(Network& network,
                                                 const std::shared_ptr<Process>& at,
                                                 const std::string& address, Core* core) {
  std::unique_ptr<Port> port(new Port(core, network.observer));
  ASSIGN_OR_RETURN(
      port->acceptor_,
      network.Listen(at, address, [port = port.get()](std::shared_ptr<Connection> connection) {
        const uint64_t number = ++port->last_visit_;
        auto visit = std::make_shared<Visit>(*port, number, std::move(connection));
        port->visits_.emplace(number, visit);
        return visit;
      }));
  return port;
}

std::vector<std::string> Port::Methods() {
  std::vector<std::string> names;
  for (const auto& [name, method] : AllMethods()) names.push_back(name);
  return names;
}

Port::~Port() {
  acceptor_ = nullptr;
  while (!visits_.empty()) {
    const auto visit = visits_.extract(visits_.begin());
    visit.mapped()->Break();
  }
}

}  // namespace penstock::simulator
