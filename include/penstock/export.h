// SPDX-License-Identifier: Apache-2.0
// PENSTOCK_EXPORT makes libpenstock.so export one class or function. A header that is exported as a
// whole has `#pragma GCC visibility push(default)` instead. All other names have hidden visibility.
#pragma once

#define PENSTOCK_EXPORT [[gnu::visibility("default")]]
