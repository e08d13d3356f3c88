// SPDX-License-Identifier: Apache-2.0
// PENSTOCK_EXPORT on a namespace block makes libpenstock.so export everything that the block
// declares. Everything else is compiled with hidden visibility.
#pragma once

#define PENSTOCK_EXPORT [[gnu::visibility("default")]]
