// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_ENFORCER_PROGRAM_H
#define RUNTIME_ENFORCER_PROGRAM_H

#include <memory>

#include <napi.h>

#include "object.h"

namespace enforcer
{

/* A program of a loaded object; usable until the object is closed. */
struct Program {
	static constexpr napi_type_tag tag = {0x52e4f0a17c3b4d03, 0x8a1c5b7e94d2f603};
	static constexpr const char *kind = "BPF program";
	bool may_be_collected() const
	{
		return true;
	}

	std::shared_ptr<Object> object;
	bpf_program *program;
};

/* An attachment; `link` is null after close(). It stays when JavaScript forgets it: only close() detaches. */
struct Link {
	static constexpr napi_type_tag tag = {0x52e4f0a17c3b4d04, 0x8a1c5b7e94d2f604};
	static constexpr const char *kind = "BPF link";
	bool may_be_collected() const
	{
		return !link;
	}

	bpf_link *link = nullptr;

	Link() = default;
	Link(const Link &) = delete;
	Link &operator=(const Link &) = delete;
	~Link()
	{
		close();
	}
	void close()
	{
		if (link)
			bpf_link__destroy(link);
		link = nullptr;
	}
};

/* {handle, name, id, tag, verifiedInstructions} */
Napi::Value program_to_javascript(Napi::Env env, const std::shared_ptr<Object> &object, bpf_program *program);

void export_program(Napi::Env env, Napi::Object exports);
void export_link(Napi::Env env, Napi::Object exports);

/* {handle, id, programId} */
Napi::Value link_to_javascript(Napi::Env env, std::shared_ptr<Link> link, const std::string &operation);

} // namespace enforcer

#endif
