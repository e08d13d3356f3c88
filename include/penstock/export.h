// SPDX-License-Identifier: Apache-2.0
// PENSTOCK_EXPORT makes libpenstock.so export one class or function. A header of which everything
// is exported has `#pragma GCC visibility push(default)` instead. All else has hidden visibility.
#pragma once

#define PENSTOCK_EXPORT [[gnu::visibility("default")]]
