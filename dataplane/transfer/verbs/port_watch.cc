// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/verbs/port_watch.h"

#include <fcntl.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/transfer/verbs/library.h"
#include "include/status_macros.h"

namespace penstock::transfer::verbs {
namespace {

using Context = std::unique_ptr<ibv_context, int (*)(ibv_context*)>;

absl::StatusOr<Context> OpenDevice(const std::string& name, const Library& library) {
  int count = 0;
  std::unique_ptr<ibv_device*, void (*)(ibv_device**)> list(library.get_device_list(&count),
                                                            library.free_device_list);
  for (int i = 0; list != nullptr && i < count; ++i) {
    if (library.get_device_name(list.get()[i]) != name) continue;
    errno = 0;
    Context context(library.open_device(list.get()[i]), library.close_device);
    if (context != nullptr) return context;
    return absl::PermissionDeniedError(absl::StrCat(
        "the RDMA device ", name, " cannot be opened: ", std::generic_category().message(errno)));
  }
  return absl::NotFoundError(absl::StrCat("there is no RDMA device ", name));
}

class DeviceEvents : public PortWatch {
 public:
  DeviceEvents(std::string name, const Library& library, Context context)
      : name_(std::move(name)), library_(library), context_(std::move(context)) {}

  int fd() const override { return context_->async_fd; }

  absl::StatusOr<std::optional<PortChange>> Next() override {
    ibv_async_event event = {};
    while (!failed_ && library_.get_async_event(context_.get(), &event) == 0) {
      library_.ack_async_event(&event);  // the library no longer needs the event
      const bool active = event.event_type == IBV_EVENT_PORT_ACTIVE;
      if (active || event.event_type == IBV_EVENT_PORT_ERR) {
        return PortChange{.port = event.element.port_num, .active = active};
      }
      failed_ = event.event_type == IBV_EVENT_DEVICE_FATAL;
    }
    failed_ = failed_ || (errno != EAGAIN && errno != EINTR);
    if (!failed_) return std::nullopt;
    return absl::UnavailableError(absl::StrCat("the RDMA device ", name_, " has failed"));
  }

 private:
  const std::string name_;
  const Library& library_;
  const Context context_;
  bool failed_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PortWatch>> PortWatch::Open(const std::string& device,
                                                           const Library& library) {
  ASSIGN_OR_RETURN(Context context, OpenDevice(device, library));
  const int flags = fcntl(context->async_fd, F_GETFL);
  if (flags < 0 || fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return absl::InternalError(
        absl::StrCat("events of the RDMA device ", device,
                     " cannot be read: ", std::generic_category().message(errno)));
  }
  return std::make_unique<DeviceEvents>(device, library, std::move(context));
}

absl::StatusOr<std::unique_ptr<PortWatch>> PortWatch::Open(const std::string& device) {
  ASSIGN_OR_RETURN(const Library* library, OpenLibrary());
  return Open(device, *library);
}

}  // namespace penstock::transfer::verbs
