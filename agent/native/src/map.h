// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_ENFORCER_MAP_H
#define RUNTIME_ENFORCER_MAP_H

#include <memory>
#include <string>

#include <napi.h>

#include "fd.h"

namespace enforcer
{

/* One BPF map. `fd` is empty after close(); work that is under way holds a reference of its own. */
struct Map {
	static constexpr napi_type_tag tag = {0x52e4f0a17c3b4d01, 0x8a1c5b7e94d2f601};
	static constexpr const char *kind = "map";
	bool may_be_collected() const
	{
		return true;
	}

	std::string name;
	uint32_t type;
	uint32_t key_size;
	uint32_t value_size;
	uint32_t max_entries;
	uint32_t flags;
	uint32_t id;
	/* What one lookup fills: for a map per CPU the value of every possible CPU, each rounded up to 8
	 * bytes. */
	size_t value_bytes;
	std::shared_ptr<Fd> fd;
};

/* Asks the kernel what the map is. An empty name takes the kernel's, which has at most 15 bytes. */
std::shared_ptr<Map> describe_map(Fd fd, const std::string &name, const std::string &operation);

/* {handle, name, type, keySize, valueSize, valueBytes, maxEntries, flags, id} */
Napi::Value map_to_javascript(Napi::Env env, const std::shared_ptr<Map> &map);

/* The map of a handle; a Failure with EBADF after close(). */
std::shared_ptr<Map> open_map(const Napi::Value &handle, const std::string &operation);

/* The subject of an error: "map 'cgroups'". */
std::string map_subject(const Map &map);

/* Why the kernel refused an update, in words that name the limit; "" where the system's words do. */
std::string update_refusal(const Map &map, int error);

void export_map(Napi::Env env, Napi::Object exports);
void export_map_bulk(Napi::Env env, Napi::Object exports);

} // namespace enforcer

#endif
