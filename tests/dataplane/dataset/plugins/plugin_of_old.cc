// SPDX-License-Identifier: Apache-2.0
// A plug-in of an older release: only its stamp may be called.
#include <cstdlib>

extern "C" const char* penstock_plugin_stamp() {
  return "penstock plugin interface 0";
}
extern "C" void penstock_register_plugin(void*) {
  std::abort();
}
