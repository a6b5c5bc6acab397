// SPDX-License-Identifier: Apache-2.0
/* What the running kernel is and can do. */
#include <cerrno>
#include <chrono>
#include <linux/membarrier.h>
#include <memory>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "arguments.h"
#include "failure.h"
#include "fd.h"
#include "host.h"
#include "messages.h"
#include "task.h"

namespace enforcer
{

static constexpr auto GRACE_WITHOUT_A_SIGNAL = std::chrono::seconds(2);

struct BtfDeleter {
	void operator()(btf *loaded) const
	{
		btf__free(loaded);
	}
};

static std::unique_ptr<btf, BtfDeleter> kernel_btf()
{
	Messages messages;
	return std::unique_ptr<btf, BtfDeleter>(btf__load_vmlinux_btf());
}

static Napi::Value has_kernel_btf(const Napi::CallbackInfo &info)
{
	return Napi::Boolean::New(info.Env(), kernel_btf() != nullptr);
}

static Napi::Value kernel_has_function(const Napi::CallbackInfo &info)
{
	const std::string name = string_argument(info[0], "name");
	const auto loaded = kernel_btf();
	const bool found = loaded && btf__find_by_name_kind(loaded.get(), name.c_str(), BTF_KIND_FUNC) > 0;
	return Napi::Boolean::New(info.Env(), found);
}

static Napi::Value possible_cpus(const Napi::CallbackInfo &info)
{
	const int cpus = libbpf_num_possible_cpus();
	if (cpus < 0)
		fail(-cpus, "possibleCpus", "/sys/devices/system/cpu/possible");
	return Napi::Number::New(info.Env(), cpus);
}

/*
 * An update of a map of maps returns only when every BPF program that may have seen the old value has ended
 * (the kernel's maybe_wait_bpf_programs), whatever the number of CPUs and their ticks.
 */
static bool wait_by_map_of_maps()
{
	const Fd inner(
	    bpf_map_create(BPF_MAP_TYPE_ARRAY, nullptr, sizeof(uint32_t), sizeof(uint32_t), 1, nullptr));
	if (!inner.valid())
		return false;
	LIBBPF_OPTS(bpf_map_create_opts, options);
	options.inner_map_fd = static_cast<uint32_t>(inner.get());
	const Fd outer(bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, nullptr, sizeof(uint32_t), sizeof(uint32_t),
				      1, &options));
	const uint32_t key = 0;
	const int value = inner.get();
	return outer.valid() && bpf_map_update_elem(outer.get(), &key, &value, BPF_ANY) == 0;
}

/* With one CPU membarrier returns at once, which proves nothing on a kernel that preempts. */
static bool wait_by_membarrier()
{
	return sysconf(_SC_NPROCESSORS_ONLN) > 1 &&
	       syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}

static Napi::Value wait_for_readers(const Napi::CallbackInfo &info)
{
	return Task<bool>::start(
	    info.Env(),
	    [] {
		    if (!wait_by_map_of_maps() && !wait_by_membarrier())
			    std::this_thread::sleep_for(GRACE_WITHOUT_A_SIGNAL);
		    return true;
	    },
	    [](Napi::Env env, bool &) { return env.Undefined(); });
}

void export_kernel(Napi::Env env, Napi::Object exports)
{
	exports.Set("hasKernelBtf", Napi::Function::New<guarded<has_kernel_btf>>(env));
	exports.Set("kernelHasFunction", Napi::Function::New<guarded<kernel_has_function>>(env));
	exports.Set("possibleCpus", Napi::Function::New<guarded<possible_cpus>>(env));
	exports.Set("waitForReaders", Napi::Function::New<guarded<wait_for_readers>>(env));
}

} // namespace enforcer
