// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/module/worker.h"

#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dataplane/transfer/ucx/module/status.h"
#include "include/status_macros.h"

namespace penstock::transfer::ucx {
namespace {

// All messages have the same number; their heads contain the kind.
constexpr unsigned kMessageId = 1;

class UcxWorker final : public Worker {
 public:
  explicit UcxWorker(Events& events) : events_(events) {}
  ~UcxWorker() override {
    // Also destroys the peers.
    if (worker_ != nullptr) ucp_worker_destroy(worker_);
  }

  absl::Status Open(ucp_context_h context);

  const std::string& address() const override { return address_; }
  size_t max_head_bytes() const override { return max_head_bytes_; }

  void Wake() override { ucp_worker_signal(worker_); }
  bool Progress() override { return ucp_worker_progress(worker_) != 0; }
  void Sleep(int milliseconds) override;

  absl::StatusOr<Peer> Connect(std::string_view address) override;
  std::vector<Lane> LanesOf(Peer peer) const override;
  bool Close(Peer peer, Work& work) override;
  bool Flush(Work& work) override;
  absl::StatusOr<bool> Send(Peer peer, const Message& message, Work& work) override;
  absl::StatusOr<bool> Receive(Offered offered, absl::Span<std::byte> into, MemoryType type,
                               Handle handle, Work& work) override;
  void Release(Offered offered) override { ucp_am_data_release(worker_, offered); }

 private:
  // UCX keeps a pointer to this object.
  struct Endpoint {
    UcxWorker* worker;
    Peer number;
    ucp_ep_h ep = nullptr;
  };

  static ucs_status_t OnActiveMessage(void* self, const void* head, size_t head_bytes, void* data,
                                      size_t bytes, const ucp_am_recv_param_t* param);
  static void OnError(void* endpoint, ucp_ep_h, ucs_status_t status);
  static void OnSent(void* request, ucs_status_t status, void* work);
  static void OnReceived(void* request, ucs_status_t status, size_t, void* work);
  static absl::StatusOr<bool> Started(ucs_status_ptr_t request, std::string_view what);

  Events& events_;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  size_t max_head_bytes_ = 0;
  std::string address_;
  Peer last_peer_ = 0;
  std::unordered_map<Peer, std::unique_ptr<Endpoint>> endpoints_;
  std::vector<std::unique_ptr<Endpoint>> closed_;  // kept because UCX may still have the pointer
};

absl::Status UcxWorker::Open(ucp_context_h context) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // made by one thread, used by another
  RETURN_IF_ERROR(ToStatus(ucp_worker_create(context, &params, &worker_),
                           "UCX could not create a worker object"));

  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessageId;
  handler.cb = &UcxWorker::OnActiveMessage;
  handler.arg = this;
  RETURN_IF_ERROR(ToStatus(ucp_worker_set_am_recv_handler(worker_, &handler),
                           "UCX rejected the message handler"));
  RETURN_IF_ERROR(ToStatus(ucp_worker_get_efd(worker_, &event_fd_), "UCX has no event descriptor"));

  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER |
                          UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS;
  RETURN_IF_ERROR(
      ToStatus(ucp_worker_query(worker_, &attributes), "UCX did not return its address"));
  address_.assign(reinterpret_cast<const char*>(attributes.address), attributes.address_length);
  ucp_worker_release_address(worker_, attributes.address);
  max_head_bytes_ = attributes.max_am_header;
  return absl::OkStatus();
}

void UcxWorker::Sleep(int milliseconds) {
  if (ucp_worker_arm(worker_) != UCS_OK) return;  // UCS_ERR_BUSY: there is an event already
  pollfd events{.fd = event_fd_, .events = POLLIN, .revents = 0};
  ::poll(&events, 1, milliseconds);
}

absl::StatusOr<Worker::Peer> UcxWorker::Connect(std::string_view address) {
  auto endpoint = std::make_unique<Endpoint>();
  endpoint->worker = this;
  endpoint->number = ++last_peer_;
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &UcxWorker::OnError;
  params.err_handler.arg = endpoint.get();
  RETURN_IF_ERROR(ToStatus(ucp_ep_create(worker_, &params, &endpoint->ep), "UCX cannot reach it"));
  const Peer number = endpoint->number;
  endpoints_.emplace(number, std::move(endpoint));
  return number;
}

std::vector<Worker::Lane> UcxWorker::LanesOf(Peer peer) const {
  // ucp_ep_query() returns the lanes from UCX 1.14 on; all releases print them:
  //   #   lane[0]:  0:tcp/eth0.0 md[0] …
  char* text = nullptr;
  size_t bytes = 0;
  std::FILE* stream = ::open_memstream(&text, &bytes);
  if (stream == nullptr) return {};
  ucp_ep_print_info(endpoints_.at(peer)->ep, stream);
  std::fclose(stream);
  const std::string printed(text, bytes);
  std::free(text);

  std::vector<Lane> lanes;
  for (size_t at = printed.find("lane["); at != std::string::npos; at = printed.find("lane[", at)) {
    const size_t slash = printed.find('/', at);
    if (slash == std::string::npos) break;
    const size_t begin = printed.rfind(':', slash) + 1;
    const size_t end = printed.rfind('.', printed.find(' ', slash));  // the path follows the dot
    if (begin > at && end != std::string::npos && end > slash) {
      lanes.push_back(
          {printed.substr(begin, slash - begin), printed.substr(slash + 1, end - slash - 1)});
    }
    at = slash;
  }
  return lanes;
}

bool UcxWorker::Close(Peer peer, Work& work) {
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  param.cb.send = &UcxWorker::OnSent;
  param.user_data = &work;
  const ucp_ep_h ep = endpoints_.at(peer)->ep;
  closed_.push_back(std::move(endpoints_.extract(peer).mapped()));
  const ucs_status_ptr_t request = ucp_ep_close_nbx(ep, &param);
  return request == nullptr || UCS_PTR_IS_ERR(request);
}

bool UcxWorker::Flush(Work& work) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &UcxWorker::OnSent;
  param.user_data = &work;
  const ucs_status_ptr_t request = ucp_worker_flush_nbx(worker_, &param);
  return request == nullptr || UCS_PTR_IS_ERR(request);
}

absl::StatusOr<bool> UcxWorker::Started(ucs_status_ptr_t request, std::string_view what) {
  if (UCS_PTR_IS_ERR(request)) return ToStatus(UCS_PTR_STATUS(request), what);
  return request == nullptr;
}

absl::StatusOr<bool> UcxWorker::Send(Peer peer, const Message& message, Work& work) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK |
                       UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.flags = message.announce ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER;
  param.cb.send = &UcxWorker::OnSent;
  param.user_data = &work;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  if (message.handle != nullptr) {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
    param.memh = static_cast<ucp_mem_h>(message.handle);
  }
  return Started(
      ucp_am_send_nbx(endpoints_.at(peer)->ep, kMessageId, message.head.data(), message.head.size(),
                      message.data.data(), message.data.size(), &param),
      "UCX could not send");
}

absl::StatusOr<bool> UcxWorker::Receive(Offered offered, absl::Span<std::byte> into,
                                        MemoryType type, Handle handle, Work& work) {
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.cb.recv_am = &UcxWorker::OnReceived;
  param.user_data = &work;
  param.memory_type = ToUcx(type);
  if (handle != nullptr) {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
    param.memh = static_cast<ucp_mem_h>(handle);
  }
  return Started(ucp_am_recv_data_nbx(worker_, offered, into.data(), into.size(), &param),
                 "UCX could not receive");
}

ucs_status_t UcxWorker::OnActiveMessage(void* self, const void* head, size_t head_bytes, void* data,
                                        size_t bytes, const ucp_am_recv_param_t* param) {
  Events& events = static_cast<UcxWorker*>(self)->events_;
  const std::string_view head_text(static_cast<const char*>(head), head_bytes);
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    return events.OnOffered(head_text, bytes, data) ? UCS_INPROGRESS : UCS_OK;
  }
  events.OnMessage(head_text, {static_cast<const std::byte*>(data), bytes});
  return UCS_OK;
}

void UcxWorker::OnError(void* endpoint, ucp_ep_h, ucs_status_t status) {
  const auto* failed = static_cast<const Endpoint*>(endpoint);
  failed->worker->events_.OnFailed(failed->number, ToStatus(status, "the connection broke"));
}

void UcxWorker::OnSent(void* request, ucs_status_t status, void* work) {
  ucp_request_free(request);
  static_cast<Work*>(work)->OnDone(ToStatus(status, "the connection broke"));
}

void UcxWorker::OnReceived(void* request, ucs_status_t status, size_t, void* work) {
  OnSent(request, status, work);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Worker>> MakeUcxWorker(ucp_context_h context,
                                                      Worker::Events& events) {
  auto worker = std::make_unique<UcxWorker>(events);
  RETURN_IF_ERROR(worker->Open(context));
  return worker;
}

}  // namespace penstock::transfer::ucx
