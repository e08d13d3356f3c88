// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/world/stub.h"

#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "control/proto/messages_proto.h"
#include "control/proto/reading_proto.h"
#include "control/stub/retry.h"
#include "control/stub/scheme.h"
#include "control/sync/clock.h"
#include "control/sync/simulation.h"
#include "include/status_macros.h"
#include "tools/simulator/world/wire.h"

namespace penstock::simulator {
namespace {

using control::CallOptions;
using control::FromWire;
using control::ToWire;
namespace wire = control::wire;

// --- Calls ------------------------------------------------------------------------

// Waits for the answer of one call. Fibers switch only at waits, so there is no lock.
class Answering final : public ConnectionEvents {
 public:
  void OnMessage(std::string message) override { answer_ = std::move(message); }
  void OnClosed(const absl::Status& reason) override {
    closed_ = reason;
    PresentSimulation()->Notify(this, /*all=*/true);
  }

  absl::StatusOr<std::string> Wait(absl::Duration left, const std::stop_token& stop) {
    Simulation& simulation = *PresentSimulation();
    const std::stop_callback wakes(stop, [&] { simulation.Notify(this, /*all=*/true); });
    const absl::Time deadline = BootTime() + left;
    while (!closed_.has_value()) {
      if (stop.stop_requested()) return absl::CancelledError("the call was stopped");
      if (BootTime() >= deadline) return absl::DeadlineExceededError("the dispatcher is silent");
      simulation.Wait(this, deadline);
    }
    RETURN_IF_ERROR(*closed_);
    if (!answer_.has_value()) return absl::UnavailableError("the call ended without an answer");
    return *std::move(answer_);
  }

 private:
  std::optional<std::string> answer_;
  std::optional<absl::Status> closed_;
};

// --- Streams ----------------------------------------------------------------------

// The events of a stream's connection. `events` is not called after Session::Stop(), because the
// connection then has no more events.
template <class Down, class WireDown>
class StreamEvents final : public ConnectionEvents {
 public:
  explicit StreamEvents(control::SessionEvents<Down>* events) : events_(events) {}
  void Opened(Connection* connection) { connection_ = connection; }

  void OnMessage(std::string bytes) override {
    WireDown wire;
    absl::StatusOr<std::optional<Down>> message = ReadBytes<Down>(bytes, &wire);
    if (!message.ok()) {
      broken_ = absl::InvalidArgumentError(absl::StrCat(
          "a message from the dispatcher cannot be read: ", message.status().message()));
      connection_->Close(absl::OkStatus());
    } else if (message->has_value()) {
      events_->OnMessage(**std::move(message), wire.sequence());
    }
  }
  void OnClosed(const absl::Status& reason) override {
    events_->OnClosed(broken_.ok() ? reason : broken_);
  }

 private:
  control::SessionEvents<Down>* const events_;
  Connection* connection_ = nullptr;  // has these events
  absl::Status broken_;               // the reason for which this end closed the connection
};

template <class Up, class WireUp>
class SimSession final : public control::Session<Up> {
 public:
  using OnSend = std::function<void(const Up&)>;

  SimSession(std::unique_ptr<Connection> connection, OnSend on_send)
      : on_send_(std::move(on_send)), connection_(std::move(connection)) {}
  ~SimSession() override { Stop(); }
  void Send(Up message) override {
    on_send_(message);
    WireUp wire;
    ToWire(message, &wire);
    connection_->Send(wire.SerializeAsString());
  }
  void Stop() override {
    connection_->Stop();
    connection_->Close(absl::OkStatus());
  }

 private:
  const OnSend on_send_;
  const std::unique_ptr<Connection> connection_;
};

template <class Up, class Down, class WireUp, class WireDown>
std::unique_ptr<control::Session<Up>> OpenStream(Network& network, const std::string& address,
                                                 const std::string& method,
                                                 control::SessionEvents<Down>* events,
                                                 std::function<void(const Up&)> on_send) {
  const auto stream = std::make_shared<StreamEvents<Down, WireDown>>(events);
  std::unique_ptr<Connection> connection = network.Connect(address, stream);
  stream->Opened(connection.get());
  connection->Send(method);
  return std::make_unique<SimSession<Up, WireUp>>(std::move(connection), std::move(on_send));
}

}  // namespace

template <class WireAnswer, class WireRequest>
absl::StatusOr<WireAnswer> SimStub::Call(const std::string& method, const WireRequest& request,
                                         const CallOptions& options) {
  const std::string bytes = request.SerializeAsString();
  WireAnswer answer;
  RETURN_IF_ERROR(control::Retry(addresses(), options, stop_.get_token(),
                                 [&](const std::string& its, absl::Duration left,
                                     const std::stop_token& stop) -> absl::Status {
                                   const auto answering = std::make_shared<Answering>();
                                   const auto connection = network_.Connect(its, answering);
                                   connection->Send(method);
                                   connection->Send(bytes);
                                   ASSIGN_OR_RETURN(const std::string got,
                                                    answering->Wait(left, stop));
                                   ASSIGN_OR_RETURN(answer, ParseBytes<WireAnswer>(got));
                                   return absl::OkStatus();
                                 }));
  return answer;
}

template <class WireRequest, class WireAnswer, class Request>
auto SimStub::Ask(const std::string& method, const Request& request, const CallOptions& options) {
  WireRequest wire;
  ToWire(request, &wire);
  absl::StatusOr<WireAnswer> answer = Call<WireAnswer>(method, wire, options);
  using Answer = decltype(FromWire(*answer));
  return answer.ok() ? FromWire(*answer) : Answer(answer.status());
}

absl::StatusOr<control::VersionRange> SimStub::GetVersion(CallOptions options) {
  ASSIGN_OR_RETURN(const wire::VersionRange answer,
                   Call<wire::VersionRange>("GetVersion", wire::VersionRequest(), options));
  return FromWire(answer);
}

absl::StatusOr<control::RegisterDatasetAnswer> SimStub::GetOrRegisterDataset(
    const control::RegisterDatasetRequest& request, CallOptions options) {
  return Ask<wire::RegisterDatasetRequest, wire::RegisterDatasetAnswer>("GetOrRegisterDataset",
                                                                        request, options);
}

absl::StatusOr<control::GetDatasetAnswer> SimStub::GetDataset(std::string_view dataset_id,
                                                              uint64_t edition,
                                                              CallOptions options) {
  wire::DatasetRequest request;
  request.set_dataset_id(std::string(dataset_id));
  request.set_edition(edition);
  ASSIGN_OR_RETURN(const wire::GetDatasetAnswer answer,
                   Call<wire::GetDatasetAnswer>("GetDataset", request, options));
  return FromWire(answer);
}

absl::Status SimStub::UnregisterDataset(std::string_view dataset_id, CallOptions options) {
  wire::DatasetRequest request;
  request.set_dataset_id(std::string(dataset_id));
  return Call<wire::Empty>("UnregisterDataset", request, options).status();
}

absl::StatusOr<control::JobAnswer> SimStub::GetOrCreateJob(
    const control::GetOrCreateJobRequest& request, CallOptions options) {
  return Ask<wire::GetOrCreateJobRequest, wire::JobAnswer>("GetOrCreateJob", request, options);
}

absl::StatusOr<control::JobAnswer> SimStub::RestoreJob(const control::RestoreJobRequest& request,
                                                       CallOptions options) {
  return Ask<wire::RestoreJobRequest, wire::JobAnswer>("RestoreJob", request, options);
}

absl::StatusOr<control::SavedRepetition> SimStub::GetReading(
    const control::GetReadingRequest& request, CallOptions options) {
  return Ask<wire::GetReadingRequest, wire::SavedRepetition>("GetReading", request, options);
}

absl::Status SimStub::CancelJob(std::string_view job, CallOptions options) {
  wire::JobRequest request;
  request.set_job(std::string(job));
  return Call<wire::Empty>("CancelJob", request, options).status();
}

absl::Status SimStub::RemoveJob(std::string_view job, CallOptions options) {
  wire::JobRequest request;
  request.set_job(std::string(job));
  return Call<wire::Empty>("RemoveJob", request, options).status();
}

absl::StatusOr<control::DispatcherStatus> SimStub::GetStatusPage(
    const control::StatusRequest& request, CallOptions options) {
  return Ask<wire::StatusRequest, wire::DispatcherStatus>("GetStatus", request, options);
}

absl::Status SimStub::FinaliseUpgrade(CallOptions options) {
  return Call<wire::Empty>("FinaliseUpgrade", wire::Empty(), options).status();
}

std::unique_ptr<control::ClientSession> SimStub::OpenClientSession(
    const std::string& address, control::ClientSessionEvents* events) {
  return OpenStream<control::ClientUp, control::ClientDown, wire::ClientUp, wire::ClientDown>(
      network_, address, "ClientSession", events,
      [on_hello = on_hello_](const control::ClientUp& message) {
        const auto* hello = std::get_if<control::ClientHello>(&message);
        if (hello != nullptr) on_hello(hello->client);
      });
}

std::unique_ptr<control::WorkerSession> SimStub::OpenWorkerSession(
    const std::string& address, control::WorkerSessionEvents* events) {
  return OpenStream<control::WorkerUp, control::WorkerDown, wire::WorkerUp, wire::WorkerDown>(
      network_, address, "WorkerSession", events, [](const control::WorkerUp&) {});
}

SimScheme::SimScheme(Network& network, OnHello on_hello) {
  control::RegisterScheme("sim", [&network, on_hello](std::vector<std::string> addresses) {
    return std::make_unique<SimStub>(network, std::move(addresses), on_hello);
  });
}

SimScheme::~SimScheme() {
  control::RegisterScheme("sim", nullptr);
}

}  // namespace penstock::simulator
