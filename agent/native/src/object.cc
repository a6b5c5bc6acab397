// SPDX-License-Identifier: Apache-2.0
#include "object.h"

#include <cerrno>
#include <fcntl.h>

#include "arguments.h"
#include "failure.h"
#include "handle.h"
#include "program.h"

namespace enforcer
{

static uint32_t named_number(const std::string &option, const std::string &name, const Napi::Value &value)
{
	return number_argument(value, (option + "['" + name + "']").c_str());
}

static LoadRequest load_request(const Napi::CallbackInfo &info)
{
	LoadRequest request;
	request.path = string_argument(info[0], "objectPath");
	if (!info[1].IsObject())
		throw Napi::TypeError::New(info.Env(), "options must be an object");
	const Napi::Object options = info[1].As<Napi::Object>();
	const Napi::Value programs = options.Get("programs");
	if (!programs.IsArray())
		throw Napi::TypeError::New(info.Env(), "options.programs must be an array of strings");
	for (uint32_t i = 0; i < programs.As<Napi::Array>().Length(); i++)
		request.programs.push_back(
		    string_argument(programs.As<Napi::Array>().Get(i), "options.programs"));
	each_property(options.Get("constants"), "options.constants",
		      [&](const std::string &name, const Napi::Value &value) {
			      request.constants.push_back(constant_argument(name, value));
		      });
	each_property(options.Get("maxEntries"), "options.maxEntries",
		      [&](const std::string &name, const Napi::Value &value) {
			      request.max_entries.emplace_back(
				  name, named_number("options.maxEntries", name, value));
		      });
	each_property(options.Get("keySizes"), "options.keySizes",
		      [&](const std::string &name, const Napi::Value &value) {
			      request.key_sizes.emplace_back(name,
							     named_number("options.keySizes", name, value));
		      });
	each_property(options.Get("reuseMaps"), "options.reuseMaps",
		      [&](const std::string &name, const Napi::Value &value) {
			      request.reused_maps.emplace_back(name, open_map(value, "load"));
		      });
	return request;
}

/* The program's own maps; those that libbpf makes for constants and globals stay its own. */
static Napi::Array maps_of(Napi::Env env, const Object &object)
{
	Napi::Array maps = Napi::Array::New(env);
	bpf_map *map = nullptr;

	bpf_object__for_each_map(map, object.object)
	{
		if (bpf_map__is_internal(map))
			continue;
		const std::string name = bpf_map__name(map);
		Fd fd(fcntl(bpf_map__fd(map), F_DUPFD_CLOEXEC, 3));
		if (!fd.valid())
			fail(errno, "load", "map '" + name + "'");
		maps.Set(maps.Length(), map_to_javascript(env, describe_map(std::move(fd), name, "load")));
	}
	return maps;
}

static Napi::Array programs_of(Napi::Env env, const std::shared_ptr<Object> &object)
{
	Napi::Array programs = Napi::Array::New(env);
	bpf_program *program = nullptr;

	bpf_object__for_each_program(program, object->object)
	{
		if (bpf_program__fd(program) >= 0)
			programs.Set(programs.Length(), program_to_javascript(env, object, program));
	}
	return programs;
}

/* (objectPath, options) -> {handle, maps, programs} */
static Napi::Value load(const Napi::CallbackInfo &info)
{
	const auto object = load_object(load_request(info));
	Napi::Object result = Napi::Object::New(info.Env());
	result.Set("maps", maps_of(info.Env(), *object));
	result.Set("programs", programs_of(info.Env(), object));
	result.Set("handle", wrap(info.Env(), object));
	return result;
}

static Napi::Value close_object(const Napi::CallbackInfo &info)
{
	unwrap<Object>(info[0])->close();
	return info.Env().Undefined();
}

void export_object(Napi::Env env, Napi::Object exports)
{
	exports.Set("load", Napi::Function::New<guarded<load>>(env));
	exports.Set("objectClose", Napi::Function::New<guarded<close_object>>(env));
}

} // namespace enforcer
