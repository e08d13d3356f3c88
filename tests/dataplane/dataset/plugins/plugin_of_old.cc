// SPDX-License-Identifier: Apache-2.0
// A plug-in of another time: nothing of it but the stamp may be called.
#include <cstdlib>

extern "C" const char* penstock_plugin_stamp() {
  return "penstock plugin interface 0";
}
extern "C" void penstock_register_plugin(void*) {
  std::abort();
}
