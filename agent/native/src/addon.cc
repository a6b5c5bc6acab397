// SPDX-License-Identifier: Apache-2.0
/* The agent's hold on the kernel's BPF objects. It knows objects, maps, links and rings, and no policies. */
#include <napi.h>

#include "host.h"
#include "map.h"
#include "messages.h"
#include "object.h"
#include "program.h"

static Napi::Object initialise(Napi::Env env, Napi::Object exports)
{
	enforcer::silence_libbpf();
	enforcer::export_object(env, exports);
	enforcer::export_program(env, exports);
	enforcer::export_link(env, exports);
	enforcer::export_map(env, exports);
	enforcer::export_map_bulk(env, exports);
	enforcer::export_rings(env, exports);
	enforcer::export_kernel(env, exports);
	enforcer::export_host(env, exports);
	return exports;
}

NODE_API_MODULE(enforcer_native, initialise)
