// SPDX-License-Identifier: Apache-2.0
#include "object.h"

#include <algorithm>
#include <cerrno>

#include <bpf/bpf.h>

#include "failure.h"
#include "messages.h"

namespace enforcer
{

static bpf_map *find_map(bpf_object *object, const std::string &name, const std::string &path)
{
	bpf_map *map = bpf_object__find_map_by_name(object, name.c_str());
	if (!map)
		fail(ENOENT, "load", path + ", map '" + name + "'", "the object has no map of that name");
	return map;
}

/* Exactly the wanted programs are loaded, whatever their section names say. */
static void choose_programs(bpf_object *object, const LoadRequest &request)
{
	bpf_program *program = nullptr;
	std::string names;

	bpf_object__for_each_program(program, object)
	{
		const std::string name = bpf_program__name(program);
		const bool wanted = std::find(request.programs.begin(), request.programs.end(), name) !=
				    request.programs.end();
		bpf_program__set_autoload(program, wanted);
		names += (names.empty() ? "" : ", ") + name;
	}
	for (const std::string &name : request.programs)
		if (!bpf_object__find_program_by_name(object, name.c_str()))
			fail(ENOENT, "load", request.path + ", program '" + name + "'",
			     "the object has no program of that name; it has " +
				 (names.empty() ? "none" : names));
}

static void set_sizes(bpf_object *object, const LoadRequest &request)
{
	for (const auto &[name, entries] : request.max_entries)
		if (const int error = bpf_map__set_max_entries(find_map(object, name, request.path), entries))
			fail(-error, "load", request.path + ", map '" + name + "'",
			     "maxEntries cannot be " + std::to_string(entries));
	for (const auto &[name, bytes] : request.key_sizes)
		if (const int error = bpf_map__set_key_size(find_map(object, name, request.path), bytes))
			fail(-error, "load", request.path + ", map '" + name + "'",
			     "keySize cannot be " + std::to_string(bytes));
}

static void require_same(const std::string &subject, const char *what, uint32_t found, uint32_t expected)
{
	if (found != expected)
		fail(EINVAL, "load", subject,
		     std::string("the map to be reused has ") + what + " " + std::to_string(found) +
			 ", expected " + std::to_string(expected));
}

/* bpf_map__reuse_fd() takes over whatever it is given; a map of another layout would be read as garbage. */
static void reuse_maps(bpf_object *object, const LoadRequest &request)
{
	for (const auto &[name, reused] : request.reused_maps) {
		bpf_map *map = find_map(object, name, request.path);
		const std::string subject = request.path + ", map '" + name + "'";
		require_same(subject, "type", reused->type, bpf_map__type(map));
		require_same(subject, "keySize", reused->key_size, bpf_map__key_size(map));
		require_same(subject, "valueSize", reused->value_size, bpf_map__value_size(map));
		require_same(subject, "maxEntries", reused->max_entries, bpf_map__max_entries(map));
		require_same(subject, "flags", reused->flags, bpf_map__map_flags(map));
		if (const int error = bpf_map__reuse_fd(map, reused->fd->get()))
			fail(-error, "load", subject, "the map cannot be reused");
	}
}

std::shared_ptr<Object> load_object(const LoadRequest &request)
{
	Messages messages;
	auto loaded = std::make_shared<Object>();

	loaded->object = bpf_object__open_file(request.path.c_str(), nullptr);
	if (!loaded->object) {
		const int error = errno;
		fail(error, "load", request.path, error_text(error) + messages.suffix());
	}
	choose_programs(loaded->object, request);
	set_sizes(loaded->object, request);
	set_constants(loaded->object, request.constants, request.path);
	reuse_maps(loaded->object, request);
	if (const int error = bpf_object__load(loaded->object))
		throw Failure{-error, "load",
			      "load " + request.path + ": " + error_text(-error) + messages.suffix(),
			      messages.verifier_log()};
	return loaded;
}

} // namespace enforcer
