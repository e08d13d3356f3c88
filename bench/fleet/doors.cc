// SPDX-License-Identifier: Apache-2.0
#include "bench/fleet/doors.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

absl::Status Watch(int events, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(events, EPOLL_CTL_ADD, fd, &event) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "epoll_ctl");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Doors>> Doors::Start() {
  Descriptor events(::epoll_create1(EPOLL_CLOEXEC));
  Descriptor end(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!events || !end) return absl::ErrnoToStatus(errno, "descriptors of listening sockets");
  RETURN_IF_ERROR(Watch(events.get(), end.get()));
  std::unique_ptr<Doors> doors(new Doors(std::move(events), std::move(end)));
  ASSIGN_OR_RETURN(doors->thread_,
                   StartThread("the doors of a fleet", [its = doors.get()] { its->Run(); }));
  return doors;
}

Doors::~Doors() {
  const uint64_t one = 1;
  (void)!::write(end_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<std::string> Doors::Open(uint64_t worker) {
  Descriptor door(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!door) return absl::ErrnoToStatus(errno, "a worker's listening socket");
  MutexLock lock(mu_);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0x7f010000U | static_cast<uint32_t>(worker & 0xffff));
  address.sin_port = htons(port_);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(door.get(), any, size) != 0 || ::listen(door.get(), 64) != 0 ||
      ::getsockname(door.get(), any, &size) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("the listening socket of worker ", worker));
  }
  RETURN_IF_ERROR(Watch(events_.get(), door.get()));
  port_ = ntohs(address.sin_port);
  open_[worker] = std::move(door);
  return absl::StrCat("127.1.", (worker >> 8) & 0xff, ".", worker & 0xff, ":", port_);
}

void Doors::Close(uint64_t worker) {
  MutexLock lock(mu_);
  open_.erase(worker);
}

void Doors::Run() {
  while (true) {
    epoll_event event{};
    const int count = ::epoll_wait(events_.get(), &event, 1, -1);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 || event.data.fd == end_.get()) return;
    while (true) {
      const Descriptor connection(
          ::accept4(event.data.fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!connection) break;
    }
  }
}

}  // namespace penstock::bench
