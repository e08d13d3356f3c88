// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/shm/socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"
#include "penstock/check.h"

#ifndef SO_PEERPIDFD  // Linux 6.5
#define SO_PEERPIDFD 77
#endif

namespace penstock::transfer::shm {
namespace {

constexpr uint32_t kPacketMagic = 0x314d5350;  // "PSM1", little endian
constexpr int kBacklog = SOMAXCONN;

struct Header {
  uint32_t magic;
  uint32_t kind;
  uint64_t a;
  uint64_t b;
  uint64_t c;
};

union DescriptorBuffer {
  cmsghdr aligned;
  char bytes[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
};

absl::StatusOr<std::pair<sockaddr_un, socklen_t>> AddressOf(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() + 1 > sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", std::string(name), "' is not a valid socket name"));
  }
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // after a 0: abstract
  return std::pair{address,
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

Descriptor NewSocket() {
  return Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool Gone(int error) {
  return error == EPIPE || error == ECONNRESET || error == ENOTCONN;
}

std::vector<Descriptor> TakeDescriptors(msghdr& message) {
  std::vector<Descriptor> taken;
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof(int));
      taken.emplace_back(fd);
    }
  }
  return taken;
}

}  // namespace

absl::StatusOr<PacketSocket> PacketSocket::Connect(std::string_view name) {
  ASSIGN_OR_RETURN(auto address, AddressOf(name));
  PacketSocket socket(NewSocket());
  if (!socket.fd_ ||
      ::connect(socket.fd(), reinterpret_cast<sockaddr*>(&address.first), address.second) != 0) {
    return absl::UnavailableError(
        errno == ECONNREFUSED ? std::string("no process is listening there")
                              : absl::StrCat("cannot connect to it: ", std::strerror(errno)));
  }
  RETURN_IF_ERROR(socket.CheckPeerUser());
  return socket;
}

absl::Status PacketSocket::CheckPeerUser() const {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  if (::getsockopt(fd(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.uid != ::geteuid()) {
    return absl::PermissionDeniedError(
        absl::StrCat("the process at the other end runs as user ", peer.uid, ", this process as ",
                     ::geteuid(), "; shared memory works only between processes of the same user"));
  }
  return absl::OkStatus();
}

Descriptor PacketSocket::OpenPeerPidfd() const {
  int pidfd = -1;
  socklen_t bytes = sizeof(pidfd);
  if (::getsockopt(fd(), SOL_SOCKET, SO_PEERPIDFD, &pidfd, &bytes) == 0) return Descriptor(pidfd);
  ucred peer{};
  bytes = sizeof(peer);
  if (::getsockopt(fd(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.pid <= 0) return {};
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
}

absl::Status PacketSocket::Send(PacketKind kind, uint64_t a, uint64_t b, uint64_t c,
                                std::string_view text,
                                std::initializer_list<int> descriptors) const {
  PENSTOCK_CHECK(descriptors.size() <= kMaxDescriptors);
  Header header{kPacketMagic, static_cast<uint32_t>(kind), a, b, c};
  iovec pieces[] = {{&header, sizeof(header)},
                    {const_cast<char*>(text.data()), std::min(text.size(), kMaxPacketText)}};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  DescriptorBuffer buffer{};
  if (descriptors.size() > 0) {
    message.msg_control = buffer.bytes;
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(control), descriptors.begin(), descriptors.size() * sizeof(int));
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return absl::OkStatus();
  // There are so few packets that a peer that lets them pile up must have stopped.
  return absl::UnavailableError(
      Gone(errno) ? std::string("the other side has closed its socket")
                  : absl::StrCat("the other side is not reading: ", std::strerror(errno)));
}

absl::StatusOr<Packet> PacketSocket::Receive() const {
  Header header{};
  char text[kMaxPacketText];
  iovec pieces[] = {{&header, sizeof(header)}, {text, sizeof(text)}};
  DescriptorBuffer buffer{};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  message.msg_control = buffer.bytes;
  message.msg_controllen = sizeof(buffer.bytes);
  ssize_t received;
  do {
    received = ::recvmsg(fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    // A reset is reported once, before the data that the peer had sent.
  } while (received < 0 && (errno == EINTR || errno == ECONNRESET));
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return absl::Status(absl::StatusCode::kNotFound, {});  // frequent: a message would allocate
  }
  if (received <= 0) return absl::UnavailableError("the other side has closed its socket");
  Packet packet;
  packet.descriptors = TakeDescriptors(message);
  if (static_cast<size_t>(received) < sizeof(header) || header.magic != kPacketMagic ||
      (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return absl::DataLossError("the other side sent an invalid packet");
  }
  packet.kind = static_cast<PacketKind>(header.kind);
  packet.a = header.a;
  packet.b = header.b;
  packet.c = header.c;
  packet.text.assign(text, static_cast<size_t>(received) - sizeof(header));
  return packet;
}

absl::StatusOr<Descriptor> ListenAt(std::string_view name) {
  ASSIGN_OR_RETURN(auto address, AddressOf(name));
  Descriptor listener = NewSocket();
  if (!listener) {
    return absl::NotFoundError(
        absl::StrCat("this machine has no Unix sockets: ", std::strerror(errno)));
  }
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address.first), address.second) != 0 ||
      ::listen(listener.get(), kBacklog) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen at the Unix socket '",
                                               std::string(name), "': ", std::strerror(errno)));
  }
  return listener;
}

absl::StatusOr<PacketSocket> AcceptFrom(int listener) {
  while (true) {
    PacketSocket socket(
        Descriptor(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
    if (socket.fd() >= 0) {
      RETURN_IF_ERROR(socket.CheckPeerUser());
      return socket;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot accept another connection: ", std::strerror(errno)));
    }
    if (errno != EINTR && errno != ECONNABORTED) return absl::NotFoundError("no client is waiting");
  }
}

}  // namespace penstock::transfer::shm
