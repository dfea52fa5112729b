// SPDX-License-Identifier: Apache-2.0
#include "interpreter.h"

#include <dlfcn.h>

#include <stdexcept>

// The type by which pybind11, also the one inside PyTorch, lets a native exception set an exception of Python. Types of
// exceptions are compared by their names.
namespace pybind11 {
class __attribute__((visibility("default"))) builtin_exception : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
    virtual void set_error() const = 0;
};
}  // namespace pybind11

namespace atp::python {
namespace {

template <class Function>
Function* find(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// Functions of every release of Python 3, with the types of its C interface.
struct Interpreter {
    int (*is_initialized)() = find<int()>("Py_IsInitialized");
    int (*lock)() = find<int()>("PyGILState_Ensure");
    void (*unlock)(int) = find<void(int)>("PyGILState_Release");
    int (*has_lock)() = find<int()>("PyGILState_Check");
    void* (*save)() = find<void*()>("PyEval_SaveThread");
    void (*restore)(void*) = find<void(void*)>("PyEval_RestoreThread");
    int (*check_signals)() = find<int()>("PyErr_CheckSignals");

    [[nodiscard]] bool runs() const { return is_initialized != nullptr && is_initialized() != 0; }
};

const Interpreter& interpreter() {
    static const Interpreter found;
    return found;
}

// A handler has raised: Python has its exception already.
class Raised final : public pybind11::builtin_exception {
  public:
    Raised() : builtin_exception("a signal handler has raised an exception") {}
    void set_error() const override {}
};

}  // namespace

void handle_signals() {
    if (!interpreter().runs()) return;
    const int state = interpreter().lock();
    const bool raised = interpreter().check_signals() != 0;
    interpreter().unlock(state);
    if (raised) throw Raised();
}

WithoutLock::WithoutLock() {
    if (interpreter().runs() && interpreter().has_lock() != 0) state_ = interpreter().save();
}

WithoutLock::~WithoutLock() {
    if (state_ != nullptr) interpreter().restore(state_);
}

}  // namespace atp::python
