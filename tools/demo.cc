// SPDX-License-Identifier: Apache-2.0
// `penstock demo` runs examples/digits/demo.py.
#include "tools/commands.h"
#include "tools/hand_over.h"

namespace penstock::tools {

void AddDemo(CLI::App& app, Chosen& chosen) {
  AddProgram(app, chosen, "demo",
             "Train on handwritten digits on this machine while a process is killed (kill -9).",
             {.file = "../share/penstock/examples/digits/demo.py",
              .needs = {"digits_make_shards", "digits_trainer", "digits_evaluate"}});
}

}  // namespace penstock::tools
