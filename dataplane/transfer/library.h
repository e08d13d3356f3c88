// SPDX-License-Identifier: Apache-2.0
// Protocols from shared libraries outside the tree; docs/transports.md walks
// through writing one. A library says which interface it was built against, which
// is looked at before anything else of it is called, and registers its transport:
//
//   PENSTOCK_EXPORT_TRANSPORT(std::make_unique<RelayTransport>())
#pragma once

#include <string>
#include <vector>

#include "absl/base/config.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "dataplane/transfer/transport.h"
#include "penstock/element.h"
#include "penstock/loan.h"

namespace penstock::transfer {

// Counts up whenever a class that a transport meets changes in a way that its
// size does not show: the order or number of virtual methods, or what they mean.
inline constexpr int kTransportInterface = 2;

// What the compiler that reads this makes of the interface. Hidden, so that a
// library answers for itself and not with the function of who loads it.
__attribute__((visibility("hidden"))) inline std::string TransportStamp() {
  return absl::StrCat("penstock transport interface ", kTransportInterface, ", Abseil ",
                      ABSL_LTS_RELEASE_VERSION, ", C++ ABI ", __GXX_ABI_VERSION, "/",
                      _GLIBCXX_USE_CXX11_ABI, ", sizes ", sizeof(Hello), " ", sizeof(DialOptions),
                      " ", sizeof(ListenOptions), " ", sizeof(Sent), " ", sizeof(Element), " ",
                      sizeof(Loan));
}

// Opens each library, unless it is open, and registers its transport. NotFound
// if it cannot be opened, FailedPrecondition if it is no transport's or has
// another stamp than this program (both are named), AlreadyExists if a protocol
// has that name. What was opened stays so. Any thread.
absl::Status LoadTransports(const std::vector<std::string>& paths);

}  // namespace penstock::transfer

// Once in a library. `make` gives a std::unique_ptr<penstock::transfer::Transport>.
#define PENSTOCK_EXPORT_TRANSPORT(make)                                                      \
  extern "C" __attribute__((visibility("default"))) const char* penstock_transport_stamp() { \
    static const std::string stamp = ::penstock::transfer::TransportStamp();                 \
    return stamp.c_str();                                                                    \
  }                                                                                          \
  extern "C" __attribute__((visibility("default"))) void penstock_register_transport(        \
      absl::Status* outcome) {                                                               \
    *outcome = ::penstock::transfer::RegisterTransport(make);                                \
  }                                                                                          \
  static_assert(true, "takes the semicolon")
