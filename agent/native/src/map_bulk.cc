// SPDX-License-Identifier: Apache-2.0
/* Operations on many keys, outside JavaScript's loop. */
#include <cerrno>

#include "arguments.h"
#include "bulk.h"
#include "failure.h"
#include "task.h"

namespace enforcer
{

/* Hands the bytes over without a copy. */
static Napi::Value to_uint8_array(Napi::Env env, Buffer &bytes)
{
	if (bytes.empty())
		return Napi::Uint8Array::New(env, 0);
	auto owned = std::make_unique<Buffer>(std::move(bytes));
	owned->shrink_to_fit();
	const size_t size = owned->size();
	void *data = owned->data();
	const auto memory = Napi::ArrayBuffer::New(
	    env, data, size, [](Napi::Env, void *, Buffer *buffer) { delete buffer; }, owned.get());
	owned.release();
	return Napi::Uint8Array::New(env, size, memory, 0);
}

static std::shared_ptr<BulkInput> bulk_input(const Napi::Value &handle, const std::string &operation)
{
	auto input = std::make_shared<BulkInput>();
	input->map = open_map(handle, operation);
	input->fd = input->map->fd;
	if (input->map->key_size == 0)
		fail(EINVAL, operation, map_subject(*input->map), "a map of this type has no keys");
	return input;
}

static void copy_in(Napi::Env env, Buffer &target, const Bytes &source, const std::string &name,
		    uint32_t count, size_t each)
{
	require_size(env, name, source.size, count * each);
	target.assign(source.data, source.data + source.size);
}

static Napi::Value to_number(Napi::Env env, uint32_t &count)
{
	return Napi::Number::New(env, count);
}

static Napi::Value entries(const Napi::CallbackInfo &info)
{
	const auto input = bulk_input(info[0], "entries");
	return Task<Entries>::start(
	    info.Env(), [input] { return read_all(*input); },
	    [](Napi::Env env, Entries &all) -> Napi::Value {
		    Napi::Object result = Napi::Object::New(env);
		    result.Set("keys", to_uint8_array(env, all.keys));
		    result.Set("values", to_uint8_array(env, all.values));
		    result.Set("count", Napi::Number::New(env, all.count));
		    return result;
	    });
}

/* (map, keys, values, count) */
static Napi::Value update_many(const Napi::CallbackInfo &info)
{
	const auto input = bulk_input(info[0], "updateMany");
	const Map &map = *input->map;
	input->count = number_argument(info[3], "count");
	copy_in(info.Env(), input->keys, bytes_argument(info[1], "keys"), "keys of " + map_subject(map),
		input->count, map.key_size);
	copy_in(info.Env(), input->values, bytes_argument(info[2], "values"), "values of " + map_subject(map),
		input->count, map.value_bytes);
	return Task<uint32_t>::start(
	    info.Env(), [input] { return write_all(*input); }, to_number);
}

/* (map, keys, count) */
static std::shared_ptr<BulkInput> keys_input(const Napi::CallbackInfo &info, const std::string &operation)
{
	auto input = bulk_input(info[0], operation);
	input->count = number_argument(info[2], "count");
	copy_in(info.Env(), input->keys, bytes_argument(info[1], "keys"),
		"keys of " + map_subject(*input->map), input->count, input->map->key_size);
	return input;
}

static Napi::Value delete_many(const Napi::CallbackInfo &info)
{
	const auto input = keys_input(info, "deleteMany");
	return Task<uint32_t>::start(
	    info.Env(), [input] { return delete_all(*input); }, to_number);
}

static Napi::Value lookup_many(const Napi::CallbackInfo &info)
{
	const auto input = keys_input(info, "lookupMany");
	return Task<Buffer>::start(
	    info.Env(), [input] { return look_up_all(*input); }, to_uint8_array);
}

void export_map_bulk(Napi::Env env, Napi::Object exports)
{
	exports.Set("mapEntries", Napi::Function::New<guarded<entries>>(env));
	exports.Set("mapUpdateMany", Napi::Function::New<guarded<update_many>>(env));
	exports.Set("mapDeleteMany", Napi::Function::New<guarded<delete_many>>(env));
	exports.Set("mapLookupMany", Napi::Function::New<guarded<lookup_many>>(env));
}

} // namespace enforcer
