// SPDX-License-Identifier: Apache-2.0
// Protocols from shared libraries that are built outside Penstock's source tree; docs/transports.md
// shows how to write one. A library exports two functions. The first reports the interface that the
// library was built against, and is checked before the second is called; the second registers the
// library's transport. One line defines both functions:
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

#pragma GCC visibility push(default)
namespace penstock::transfer {

// Raise this when a class that a transport uses changes without a change of size, for example in
// the order, number or meaning of its virtual methods.
inline constexpr int kTransportInterface = 2;

// Returns the stamp of the interface as this compiler sees it. Hidden, so that a library returns
// its own stamp and not the stamp of the program that loads it.
__attribute__((visibility("hidden"))) inline std::string TransportStamp() {
  return absl::StrCat("penstock transport interface ", kTransportInterface, ", Abseil ",
                      ABSL_LTS_RELEASE_VERSION, ", C++ ABI ", __GXX_ABI_VERSION, "/",
                      _GLIBCXX_USE_CXX11_ABI, ", sizes ", sizeof(Hello), " ", sizeof(DialOptions),
                      " ", sizeof(ListenOptions), " ", sizeof(Sent), " ", sizeof(Element), " ",
                      sizeof(Loan));
}

// Opens each library that is not open yet and registers its transport. NotFound if a library cannot
// be opened; FailedPrecondition if it is not a transport library, or if its stamp differs from this
// program's (the error gives both stamps); AlreadyExists if its protocol's name is taken. An opened
// library stays open. Any thread.
absl::Status LoadTransports(const std::vector<std::string>& paths);

}  // namespace penstock::transfer
#pragma GCC visibility pop

// Use this once in a library. `make` is a std::unique_ptr<penstock::transfer::Transport>.
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
