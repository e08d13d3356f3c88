// SPDX-License-Identifier: Apache-2.0
// Waits without the GIL, and does not return to Python while the interpreter shuts down.
//
// If a thread requests the GIL during the shutdown, Python ends the thread and unwinds it, through
// destructors of Python objects, without the GIL. So threads that wait here do not request the GIL
// during a shutdown. They block until the process ends, as all Python threads do since 3.14.
#pragma once

#include <pybind11/pybind11.h>

namespace penstock::python {

// Releases the GIL until the end of the scope.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;

 private:
  PyThreadState* thread_;
};

// Declares that the calling thread is about to end the process: no other thread returns from here
// to Python.
void BeginToLeave();
// Waits, for at most 10 s, until the other threads have left their calls. REQUIRES: the calls were
// stopped.
void AwaitOthers();
// Must be called where a call begins. REQUIRES: the GIL is held.
void StayAwayIfLeaving();

}  // namespace penstock::python
