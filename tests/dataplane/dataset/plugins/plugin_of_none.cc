// SPDX-License-Identifier: Apache-2.0
// A library that is no plug-in.
extern "C" int answer() {
  return 42;
}
