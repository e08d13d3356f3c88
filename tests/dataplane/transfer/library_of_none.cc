// SPDX-License-Identifier: Apache-2.0
// A library without a transport.
extern "C" int answer() {
  return 42;
}
