// SPDX-License-Identifier: Apache-2.0
#include "python/core/signals.h"

#include <pthread.h>
#include <pybind11/pybind11.h>

#include <atomic>

namespace penstock::python {

namespace py = pybind11;

namespace {

std::atomic<unsigned long> main_thread{0};  // Python's thread identifier

}  // namespace

void LearnWhoHearsSignals() {
  main_thread =
      py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  // The thread that calls fork() is the child's main thread.
  pthread_atfork(nullptr, nullptr, [] { main_thread = PyThread_get_thread_ident(); });
}

bool HearsSignals() {
  return main_thread == PyThread_get_thread_ident();
}

void HearSignals() {
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

}  // namespace penstock::python
