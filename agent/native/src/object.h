// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_ENFORCER_OBJECT_H
#define RUNTIME_ENFORCER_OBJECT_H

#include <memory>
#include <string>
#include <vector>

#include <bpf/libbpf.h>
#include <napi.h>

#include "constants.h"
#include "map.h"

namespace enforcer
{

/* A loaded BPF object; `object` is null after close(). */
struct Object {
	static constexpr napi_type_tag tag = {0x52e4f0a17c3b4d02, 0x8a1c5b7e94d2f602};
	static constexpr const char *kind = "BPF object";
	bool may_be_collected() const
	{
		return true;
	}

	bpf_object *object = nullptr;

	Object() = default;
	Object(const Object &) = delete;
	Object &operator=(const Object &) = delete;
	~Object()
	{
		close();
	}
	void close()
	{
		if (object)
			bpf_object__close(object);
		object = nullptr;
	}
};

struct LoadRequest {
	std::string path;
	std::vector<std::string> programs;
	std::vector<NamedConstant> constants;
	std::vector<std::pair<std::string, uint32_t>> max_entries;
	std::vector<std::pair<std::string, uint32_t>> key_sizes;
	std::vector<std::pair<std::string, std::shared_ptr<Map>>> reused_maps;
};

/* Opens, adjusts and loads the object. Throws a Failure that names what did not fit, with the verifier's log.
 */
std::shared_ptr<Object> load_object(const LoadRequest &request);

void export_object(Napi::Env env, Napi::Object exports);

} // namespace enforcer

#endif
