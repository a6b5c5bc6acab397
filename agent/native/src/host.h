// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_ENFORCER_HOST_H
#define RUNTIME_ENFORCER_HOST_H

#include <napi.h>

namespace enforcer
{

void export_host(Napi::Env env, Napi::Object exports);
void export_kernel(Napi::Env env, Napi::Object exports);
void export_rings(Napi::Env env, Napi::Object exports);

} // namespace enforcer

#endif
