// SPDX-License-Identifier: Apache-2.0
/* What Node has no call for: cgroup ids, file system types, file locks, the memlock limit. */
#include "host.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "arguments.h"
#include "failure.h"
#include "fd.h"
#include "handle.h"

namespace enforcer
{

/* A lock on a file; held until release() or the end of the process, also when JavaScript forgets it. */
struct Lock {
	static constexpr napi_type_tag tag = {0x52e4f0a17c3b4d05, 0x8a1c5b7e94d2f605};
	static constexpr const char *kind = "lock";
	bool may_be_collected() const
	{
		return !fd;
	}

	std::unique_ptr<Fd> fd;
};

static struct statfs file_system(const std::string &path, const std::string &operation)
{
	struct statfs status = {};
	if (statfs(path.c_str(), &status))
		fail(errno, operation, path);
	return status;
}

/*
 * The id that bpf_get_current_cgroup_id() gives: kernfs hands it out as the file handle of the directory.
 * Where handles are not to be had it is the inode number, which is the same on 64-bit kernels.
 */
static Napi::Value cgroup_id(const Napi::CallbackInfo &info)
{
	const std::string path = string_argument(info[0], "path");
	const auto type = file_system(path, "cgroupId").f_type;
	if (type != CGROUP2_SUPER_MAGIC && type != CGROUP_SUPER_MAGIC)
		fail(EINVAL, "cgroupId", path, "it is not in a cgroup file system");

	uint64_t id = 0;
	alignas(file_handle) char memory[sizeof(file_handle) + sizeof(id)] = {};
	auto *handle = reinterpret_cast<file_handle *>(memory);
	int mount_id = 0;
	handle->handle_bytes = sizeof(id);
	if (name_to_handle_at(AT_FDCWD, path.c_str(), handle, &mount_id, 0) == 0 &&
	    handle->handle_bytes == sizeof(id)) {
		memcpy(&id, handle->f_handle, sizeof(id));
		return Napi::BigInt::New(info.Env(), id);
	}
	struct stat status = {};
	if (stat(path.c_str(), &status))
		fail(errno, "cgroupId", path);
	return Napi::BigInt::New(info.Env(), static_cast<uint64_t>(status.st_ino));
}

static Napi::Value file_system_magic(const Napi::CallbackInfo &info)
{
	const auto type = file_system(string_argument(info[0], "path"), "filesystemType").f_type;
	return Napi::Number::New(info.Env(), static_cast<uint32_t>(type));
}

static Napi::Value is_mount_point(const Napi::CallbackInfo &info)
{
	const std::string path = string_argument(info[0], "path");
	struct statx status = {};
	if (statx(AT_FDCWD, path.c_str(), AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &status))
		fail(errno, "isMountPoint", path);
	return Napi::Boolean::New(info.Env(), (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0);
}

/* Undefined where another process (or another lock of this one) holds it. */
static Napi::Value try_lock(const Napi::CallbackInfo &info)
{
	const std::string path = string_argument(info[0], "path");
	auto lock = std::make_shared<Lock>();
	lock->fd = std::make_unique<Fd>(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
	if (!lock->fd->valid())
		fail(errno, "tryLock", path);
	if (flock(lock->fd->get(), LOCK_EX | LOCK_NB)) {
		if (errno == EWOULDBLOCK)
			return info.Env().Undefined();
		fail(errno, "tryLock", path);
	}
	return wrap(info.Env(), lock);
}

static Napi::Value release_lock(const Napi::CallbackInfo &info)
{
	unwrap<Lock>(info[0])->fd.reset();
	return info.Env().Undefined();
}

/* Before 5.11 maps count against this limit, and its default of 64 KiB holds none of ours. */
static Napi::Value raise_memlock_limit(const Napi::CallbackInfo &info)
{
	const rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	if (setrlimit(RLIMIT_MEMLOCK, &unlimited))
		fail(errno, "raiseMemlockLimit", "RLIMIT_MEMLOCK");
	return info.Env().Undefined();
}

void export_host(Napi::Env env, Napi::Object exports)
{
	exports.Set("cgroupId", Napi::Function::New<guarded<cgroup_id>>(env));
	exports.Set("filesystemMagic", Napi::Function::New<guarded<file_system_magic>>(env));
	exports.Set("isMountPoint", Napi::Function::New<guarded<is_mount_point>>(env));
	exports.Set("tryLock", Napi::Function::New<guarded<try_lock>>(env));
	exports.Set("lockRelease", Napi::Function::New<guarded<release_lock>>(env));
	exports.Set("raiseMemlockLimit", Napi::Function::New<guarded<raise_memlock_limit>>(env));
}

} // namespace enforcer
