// SPDX-License-Identifier: Apache-2.0
// Waiting without Python's lock, and leaving when the interpreter goes.
//
// Python ends a thread that asks for the GIL while the interpreter goes, wherever it is,
// and unwinds it: through destructors of Python's objects, without the GIL. So threads
// of ours never ask for it then: they stay where they are until the process ends, as all
// of Python's do from 3.14 on.
#pragma once

#include <pybind11/pybind11.h>

namespace penstock::python {

// Gives up the GIL until the end of the scope.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;

 private:
  PyThreadState* thread_;
};

// The calling thread is about to end the process: no other one comes back from here
// to Python.
void BeginToLeave();
// Waits for the others to be out of their calls, which were told to stop: 10 s at most.
void AwaitOthers();
// Where a call begins. REQUIRES: the GIL is held.
void StayAwayIfLeaving();

}  // namespace penstock::python
