// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/verbs/devices.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/transfer/verbs/library.h"
#include "include/status_macros.h"

namespace penstock::transfer::verbs {
namespace {

std::string ErrorText(int error) {
  return std::generic_category().message(error);
}

PortState StateOf(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_INIT:
      return PortState::kInitializing;
    case IBV_PORT_ARMED:
      return PortState::kArmed;
    case IBV_PORT_ACTIVE:
      return PortState::kActive;
    default:
      return PortState::kDown;
  }
}

GidType TypeOf(uint32_t type) {
  switch (type) {
    case IBV_GID_TYPE_ROCE_V1:
      return GidType::kRoceV1;
    case IBV_GID_TYPE_ROCE_V2:
      return GidType::kRoceV2;
    default:
      return GidType::kInfiniBand;
  }
}

int MtuBytes(ibv_mtu mtu) {
  return mtu < IBV_MTU_256 || mtu > IBV_MTU_4096 ? 0 : 128 << mtu;
}

// The codes are defined in the InfiniBand specification, volume 1, "PortInfo".
double GigabitsPerSecond(uint8_t width, uint8_t speed) {
  constexpr std::pair<int, int> kLanes[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
  constexpr std::pair<int, double> kRates[] = {{1, 2.5}, {2, 5},   {4, 10},  {8, 10},
                                               {16, 14}, {32, 25}, {64, 50}, {128, 100}};
  for (auto [width_code, lanes] : kLanes) {
    for (auto [speed_code, rate] : kRates) {
      if (width == width_code && speed == speed_code) return lanes * rate;
    }
  }
  return 0;
}

Gid GidOf(const ibv_gid_entry& entry) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, entry.gid.raw, text, sizeof(text));
  return {
      .index = static_cast<int>(entry.gid_index), .address = text, .type = TypeOf(entry.gid_type)};
}

absl::Status AddPorts(const Library& library, ibv_context* context, int count, Device& device) {
  size_t table_entries = 0;
  for (int number = 1; number <= count; ++number) {
    ibv_port_attr port = {};
    if (int error = library.query_port(context, static_cast<uint8_t>(number),
                                       reinterpret_cast<_compat_ibv_port_attr*>(&port))) {
      return absl::InternalError(
          absl::StrCat("port ", number, " cannot be queried: ", ErrorText(error)));
    }
    table_entries += static_cast<size_t>(std::max(port.gid_tbl_len, 0));
    device.ports.push_back(
        {.number = number,
         .state = StateOf(port.state),
         .link_layer = port.link_layer == IBV_LINK_LAYER_ETHERNET ? LinkLayer::kEthernet
                                                                  : LinkLayer::kInfiniBand,
         .active_mtu_bytes = MtuBytes(port.active_mtu),
         .max_mtu_bytes = MtuBytes(port.max_mtu),
         .gigabits_per_s = GigabitsPerSecond(port.active_width, port.active_speed),
         .gids = {}});
  }
  std::vector<ibv_gid_entry> table(table_entries);
  const ssize_t used =
      library.query_gid_table(context, table.data(), table.size(), 0, sizeof(ibv_gid_entry));
  if (used < 0) {
    return absl::InternalError(
        absl::StrCat("the GID table cannot be read: ", ErrorText(static_cast<int>(-used))));
  }
  table.resize(static_cast<size_t>(used));
  for (const ibv_gid_entry& entry : table) {
    if (entry.port_num < 1 || entry.port_num > device.ports.size()) continue;
    device.ports[entry.port_num - 1].gids.push_back(GidOf(entry));
  }
  return absl::OkStatus();
}

absl::Status Ask(const Library& library, ibv_device* handle, Device& device) {
  errno = 0;
  std::unique_ptr<ibv_context, int (*)(ibv_context*)> context(library.open_device(handle),
                                                              library.close_device);
  if (context == nullptr) {
    return absl::PermissionDeniedError(absl::StrCat("it cannot be opened", errno != 0 ? ": " : "",
                                                    errno != 0 ? ErrorText(errno) : std::string()));
  }
  ibv_device_attr attributes = {};
  if (int error = library.query_device(context.get(), &attributes)) {
    return absl::InternalError(absl::StrCat("it cannot be queried: ", ErrorText(error)));
  }
  attributes.fw_ver[sizeof(attributes.fw_ver) - 1] = '\0';
  device.firmware = attributes.fw_ver;
  return AddPorts(library, context.get(), attributes.phys_port_cnt, device);
}

}  // namespace

absl::StatusOr<std::vector<Device>> ListDevices(const Library& library) {
  int count = 0;
  errno = 0;
  std::unique_ptr<ibv_device*, void (*)(ibv_device**)> list(library.get_device_list(&count),
                                                            library.free_device_list);
  if (list == nullptr) {
    return absl::UnavailableError(absl::StrCat("libibverbs returned no device list (",
                                               ErrorText(errno),
                                               "): the kernel has no RDMA support, or hides it"));
  }
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) {
    Device device;
    device.name = library.get_device_name(list.get()[i]);
    absl::Status asked = Ask(library, list.get()[i], device);
    if (!asked.ok()) device = {.name = device.name, .status = asked, .firmware = "", .ports = {}};
    devices.push_back(std::move(device));
  }
  return devices;
}

absl::StatusOr<std::vector<Device>> ListDevices() {
  ASSIGN_OR_RETURN(const Library* library, OpenLibrary());
  return ListDevices(*library);
}

}  // namespace penstock::transfer::verbs
