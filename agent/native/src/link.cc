// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <cerrno>

#include <bpf/bpf.h>

#include "arguments.h"
#include "failure.h"
#include "handle.h"
#include "messages.h"
#include "pin.h"

namespace enforcer
{

Napi::Value link_to_javascript(Napi::Env env, std::shared_ptr<Link> link, const std::string &operation)
{
	bpf_link_info info = {};
	uint32_t length = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_link__fd(link->link), &info, &length))
		fail(errno, operation, "the link");
	Napi::Object object = Napi::Object::New(env);
	object.Set("id", Napi::Number::New(env, info.id));
	object.Set("programId", Napi::Number::New(env, info.prog_id));
	object.Set("handle", wrap(env, std::move(link)));
	return object;
}

static Napi::Value pin_link(const Napi::CallbackInfo &info)
{
	const auto link = unwrap<Link>(info[0]);
	const std::string path = string_argument(info[1], "path");
	if (!link->link)
		fail(EBADF, "pin", "a link", "the link has been closed");
	pin_object(bpf_link__fd(link->link), "a link", path);
	return info.Env().Undefined();
}

static Napi::Value open_pinned_link(const Napi::CallbackInfo &info)
{
	const std::string path = string_argument(info[0], "path");
	{
		const Fd fd = open_pinned(path, "openPinnedLink");
		require_pinned_kind(fd.get(), "bpf-link", path, "openPinnedLink");
	}
	Messages messages;
	auto link = std::make_shared<Link>();
	link->link = bpf_link__open(path.c_str());
	if (!link->link) {
		const int error = errno;
		fail(error, "openPinnedLink", path, error_text(error) + messages.suffix());
	}
	return link_to_javascript(info.Env(), link, "openPinnedLink");
}

static Napi::Value close_link(const Napi::CallbackInfo &info)
{
	unwrap<Link>(info[0])->close();
	return info.Env().Undefined();
}

void export_link(Napi::Env env, Napi::Object exports)
{
	exports.Set("linkPin", Napi::Function::New<guarded<pin_link>>(env));
	exports.Set("linkClose", Napi::Function::New<guarded<close_link>>(env));
	exports.Set("openPinnedLink", Napi::Function::New<guarded<open_pinned_link>>(env));
}

} // namespace enforcer
