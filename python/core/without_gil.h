// SPDX-License-Identifier: Apache-2.0
// Waiting without Python's lock, and staying away while the interpreter shuts down.
//
// If a thread requests the GIL during the shutdown, Python ends the thread there and unwinds it,
// through destructors of Python objects, without the GIL. So threads that wait here never request
// the GIL then. They stop where they are until the process ends, as all Python threads do from 3.14
// on.
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
// Waits, for at most 10 s, until the other threads have left their calls, which must have been
// stopped.
void AwaitOthers();
// Call it where a call begins. REQUIRES: the GIL is held.
void StayAwayIfLeaving();

}  // namespace penstock::python
