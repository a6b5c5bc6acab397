// SPDX-License-Identifier: Apache-2.0
/* Single operations on a map. */
#include "map.h"

#include <cerrno>
#include <fstream>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "arguments.h"
#include "failure.h"
#include "handle.h"
#include "pin.h"

namespace enforcer
{

static bool is_per_cpu(uint32_t type)
{
	return type == BPF_MAP_TYPE_PERCPU_ARRAY || type == BPF_MAP_TYPE_PERCPU_HASH ||
	       type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}

std::shared_ptr<Map> describe_map(Fd fd, const std::string &name, const std::string &operation)
{
	bpf_map_info info = {};
	uint32_t length = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd.get(), &info, &length))
		fail(errno, operation, "map '" + name + "'");
	auto map = std::make_shared<Map>();
	map->name = name.empty() ? info.name : name;
	map->type = info.type;
	map->key_size = info.key_size;
	map->value_size = info.value_size;
	map->max_entries = info.max_entries;
	map->flags = info.map_flags;
	map->id = info.id;
	map->value_bytes = info.value_size;
	if (is_per_cpu(info.type)) {
		const int cpus = libbpf_num_possible_cpus();
		if (cpus < 0)
			fail(-cpus, operation, "map '" + map->name + "'",
			     "cannot read the number of possible CPUs");
		map->value_bytes = (info.value_size + 7) / 8 * 8 * static_cast<size_t>(cpus);
	}
	map->fd = std::make_shared<Fd>(std::move(fd));
	return map;
}

Napi::Value map_to_javascript(Napi::Env env, const std::shared_ptr<Map> &map)
{
	Napi::Object object = Napi::Object::New(env);
	object.Set("handle", wrap(env, map));
	object.Set("name", Napi::String::New(env, map->name));
	object.Set("type", Napi::Number::New(env, map->type));
	object.Set("keySize", Napi::Number::New(env, map->key_size));
	object.Set("valueSize", Napi::Number::New(env, map->value_size));
	object.Set("valueBytes", Napi::Number::New(env, static_cast<double>(map->value_bytes)));
	object.Set("maxEntries", Napi::Number::New(env, map->max_entries));
	object.Set("flags", Napi::Number::New(env, map->flags));
	object.Set("id", Napi::Number::New(env, map->id));
	return object;
}

std::string map_subject(const Map &map)
{
	return "map '" + map.name + "'";
}

std::shared_ptr<Map> open_map(const Napi::Value &handle, const std::string &operation)
{
	auto map = unwrap<Map>(handle);
	if (!map->fd)
		fail(EBADF, operation, map_subject(*map), "the map has been closed");
	return map;
}

std::string update_refusal(const Map &map, int error)
{
	if (error == E2BIG)
		return "it holds its maximum of " + std::to_string(map.max_entries) + " entries";
	return "";
}

/* (type, keySize, valueSize, maxEntries, flags, name) */
static Napi::Value create_map(const Napi::CallbackInfo &info)
{
	LIBBPF_OPTS(bpf_map_create_opts, options);
	const auto type = static_cast<bpf_map_type>(number_argument(info[0], "type"));
	const uint32_t key_size = number_argument(info[1], "keySize");
	const uint32_t value_size = number_argument(info[2], "valueSize");
	const uint32_t max_entries = number_argument(info[3], "maxEntries");
	options.map_flags = number_argument(info[4], "flags");
	const std::string name = string_argument(info[5], "name");

	Fd fd(bpf_map_create(type, name.substr(0, BPF_OBJ_NAME_LEN - 1).c_str(), key_size, value_size,
			     max_entries, &options));
	if (!fd.valid())
		fail(errno, "createMap", "map '" + name + "'");
	return map_to_javascript(info.Env(), describe_map(std::move(fd), name, "createMap"));
}

static Napi::Value lookup(const Napi::CallbackInfo &info)
{
	const auto map = open_map(info[0], "lookup");
	const Bytes key = bytes_argument(info[1], "key");
	require_size(info.Env(), "key of " + map_subject(*map), key.size, map->key_size);
	auto value = Napi::Uint8Array::New(info.Env(), map->value_bytes);

	if (bpf_map_lookup_elem(map->fd->get(), key.data, value.Data())) {
		if (errno == ENOENT)
			return info.Env().Undefined();
		fail(errno, "lookup", map_subject(*map));
	}
	return value;
}

/* (map, key, value, flags) */
static Napi::Value update(const Napi::CallbackInfo &info)
{
	const auto map = open_map(info[0], "update");
	const Bytes key = bytes_argument(info[1], "key");
	const Bytes value = bytes_argument(info[2], "value");
	const uint32_t flags = number_argument(info[3], "flags");
	require_size(info.Env(), "key of " + map_subject(*map), key.size, map->key_size);
	require_size(info.Env(), "value of " + map_subject(*map), value.size, map->value_bytes);

	if (bpf_map_update_elem(map->fd->get(), key.data, value.data, flags)) {
		const int error = errno;
		fail(error, "update", map_subject(*map), update_refusal(*map, error));
	}
	return info.Env().Undefined();
}

/* Returns whether the key was there. */
static Napi::Value remove(const Napi::CallbackInfo &info)
{
	const auto map = open_map(info[0], "delete");
	const Bytes key = bytes_argument(info[1], "key");
	require_size(info.Env(), "key of " + map_subject(*map), key.size, map->key_size);

	const int failed = bpf_map_delete_elem(map->fd->get(), key.data);
	if (failed && errno != ENOENT)
		fail(errno, "delete", map_subject(*map));
	return Napi::Boolean::New(info.Env(), failed == 0);
}

/* What the kernel says the map takes now. Kernels before 6.4 estimate it from the capacity. */
static Napi::Value memory_bytes(const Napi::CallbackInfo &info)
{
	const auto map = open_map(info[0], "memoryBytes");
	std::ifstream file("/proc/self/fdinfo/" + std::to_string(map->fd->get()));
	std::string word;
	double bytes = 0;

	while (file >> word)
		if (word == "memlock:" && file >> bytes)
			return Napi::Number::New(info.Env(), bytes);
	fail(ENODATA, "memoryBytes", map_subject(*map), "the kernel shows no memlock in /proc/self/fdinfo");
}

static Napi::Value pin_map(const Napi::CallbackInfo &info)
{
	const auto map = open_map(info[0], "pin");
	pin_object(map->fd->get(), map_subject(*map), string_argument(info[1], "path"));
	return info.Env().Undefined();
}

static Napi::Value open_pinned_map(const Napi::CallbackInfo &info)
{
	const std::string path = string_argument(info[0], "path");
	Fd fd = open_pinned(path, "openPinnedMap");
	require_pinned_kind(fd.get(), "bpf-map", path, "openPinnedMap");
	return map_to_javascript(info.Env(), describe_map(std::move(fd), "", "openPinnedMap"));
}

static Napi::Value close_map(const Napi::CallbackInfo &info)
{
	unwrap<Map>(info[0])->fd.reset();
	return info.Env().Undefined();
}

void export_map(Napi::Env env, Napi::Object exports)
{
	exports.Set("createMap", Napi::Function::New<guarded<create_map>>(env));
	exports.Set("mapLookup", Napi::Function::New<guarded<lookup>>(env));
	exports.Set("mapUpdate", Napi::Function::New<guarded<update>>(env));
	exports.Set("mapDelete", Napi::Function::New<guarded<remove>>(env));
	exports.Set("mapMemoryBytes", Napi::Function::New<guarded<memory_bytes>>(env));
	exports.Set("mapPin", Napi::Function::New<guarded<pin_map>>(env));
	exports.Set("mapClose", Napi::Function::New<guarded<close_map>>(env));
	exports.Set("openPinnedMap", Napi::Function::New<guarded<open_pinned_map>>(env));
}

} // namespace enforcer
