// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <cerrno>

#include <bpf/bpf.h>

#include "arguments.h"
#include "failure.h"
#include "handle.h"
#include "messages.h"

namespace enforcer
{

static bpf_prog_info read_info(int fd, const std::string &operation, const std::string &subject)
{
	bpf_prog_info info = {};
	uint32_t length = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &length))
		fail(errno, operation, subject);
	return info;
}

static std::string hexadecimal(const uint8_t *bytes, size_t count)
{
	static const char digits[] = "0123456789abcdef";
	std::string text;
	for (size_t i = 0; i < count; i++) {
		text += digits[bytes[i] >> 4];
		text += digits[bytes[i] & 15];
	}
	return text;
}

/* {name, id, tag, verifiedInstructions, runCount, runTimeNs, recursionMisses}; what the kernel does not know
 * is 0. */
static Napi::Object info_to_javascript(Napi::Env env, const bpf_prog_info &info)
{
	Napi::Object object = Napi::Object::New(env);
	object.Set("name", Napi::String::New(env, info.name));
	object.Set("id", Napi::Number::New(env, info.id));
	object.Set("tag", Napi::String::New(env, hexadecimal(info.tag, sizeof(info.tag))));
	object.Set("verifiedInstructions", Napi::Number::New(env, info.verified_insns));
	object.Set("runCount", Napi::BigInt::New(env, static_cast<uint64_t>(info.run_cnt)));
	object.Set("runTimeNs", Napi::BigInt::New(env, static_cast<uint64_t>(info.run_time_ns)));
	object.Set("recursionMisses", Napi::BigInt::New(env, static_cast<uint64_t>(info.recursion_misses)));
	return object;
}

Napi::Value program_to_javascript(Napi::Env env, const std::shared_ptr<Object> &object, bpf_program *program)
{
	const std::string name = bpf_program__name(program);
	Napi::Object result =
	    info_to_javascript(env, read_info(bpf_program__fd(program), "load", "program '" + name + "'"));
	result.Set("name", Napi::String::New(env, name));
	result.Set("handle", wrap(env, std::make_shared<Program>(Program{object, program})));
	return result;
}

static std::shared_ptr<Program> open_program(const Napi::Value &handle, const std::string &operation)
{
	auto program = unwrap<Program>(handle);
	if (!program->object->object)
		fail(EBADF, operation, "a program", "its object has been closed");
	return program;
}

static std::string program_subject(const Program &program)
{
	return std::string("program '") + bpf_program__name(program.program) + "'";
}

static Napi::Value attach(const Napi::CallbackInfo &info)
{
	const auto program = open_program(info[0], "attach");
	Messages messages;
	auto link = std::make_shared<Link>();

	link->link = bpf_program__attach(program->program);
	if (!link->link) {
		const int error = errno;
		fail(error, "attach", program_subject(*program), error_text(error) + messages.suffix());
	}
	return link_to_javascript(info.Env(), link, "attach");
}

static Napi::Value program_info(const Napi::CallbackInfo &info)
{
	const auto program = open_program(info[0], "info");
	return info_to_javascript(
	    info.Env(), read_info(bpf_program__fd(program->program), "info", program_subject(*program)));
}

static Napi::Value program_info_by_id(const Napi::CallbackInfo &info)
{
	const uint32_t id = number_argument(info[0], "id");
	const std::string subject = "program " + std::to_string(id);
	const Fd fd(bpf_prog_get_fd_by_id(id));
	if (!fd.valid())
		fail(errno, "programById", subject);
	return info_to_javascript(info.Env(), read_info(fd.get(), "programById", subject));
}

void export_program(Napi::Env env, Napi::Object exports)
{
	exports.Set("programAttach", Napi::Function::New<guarded<attach>>(env));
	exports.Set("programInfo", Napi::Function::New<guarded<program_info>>(env));
	exports.Set("programInfoById", Napi::Function::New<guarded<program_info_by_id>>(env));
}

} // namespace enforcer
