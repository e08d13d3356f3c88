// SPDX-License-Identifier: Apache-2.0
// A library of an older release: only its stamp may be called.
#include <cstdlib>

extern "C" const char* penstock_transport_stamp() {
  return "penstock transport interface 0";
}
extern "C" void penstock_register_transport(void*) {
  std::abort();
}
