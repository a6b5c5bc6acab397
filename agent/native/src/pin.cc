// SPDX-License-Identifier: Apache-2.0
#include "pin.h"

#include <cerrno>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <bpf/bpf.h>

#include "failure.h"

namespace enforcer
{

/* Names with a dot are reserved in a BPF file system; the kernel calls them "not permitted". */
static bool has_reserved_name(const std::string &path)
{
	return path.find('.', path.rfind('/') + 1) != std::string::npos;
}

/* "" if the path's directory is in a BPF file system, or cannot be looked at. */
static std::string wrong_file_system(const std::string &path)
{
	struct statfs status = {};
	const std::string directory =
	    path.substr(0, path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));

	if (statfs(directory.empty() ? "." : directory.c_str(), &status) || status.f_type == BPF_FS_MAGIC)
		return "";
	return directory + " is not in a BPF file system (mount -t bpf bpf /sys/fs/bpf)";
}

void pin_object(int fd, const std::string &subject, const std::string &path)
{
	if (bpf_obj_pin(fd, path.c_str())) {
		const int error = errno;
		const bool reserved = error == EPERM && has_reserved_name(path);
		fail(error, "pin", subject + " at " + path,
		     reserved	       ? "a name in a BPF file system must not contain a dot"
		     : error == EEXIST ? ""
				       : wrong_file_system(path));
	}
}

Fd open_pinned(const std::string &path, const std::string &operation)
{
	Fd fd(bpf_obj_get(path.c_str()));
	if (!fd.valid()) {
		const int error = errno;
		fail(error, operation, path,
		     error == ENOENT ? "nothing is pinned there" : wrong_file_system(path));
	}
	return fd;
}

void require_pinned_kind(int fd, const std::string &kind, const std::string &path,
			 const std::string &operation)
{
	char target[64] = "";
	const std::string link = "/proc/self/fd/" + std::to_string(fd);

	/* The kernel names the three kinds so in /proc: "anon_inode:bpf-map". */
	if (readlink(link.c_str(), target, sizeof(target) - 1) < 0)
		fail(errno, operation, path, "cannot tell what is pinned there: /proc is not readable");
	const std::string found = target;
	if (found.find(kind) == std::string::npos)
		fail(EINVAL, operation, path, "what is pinned there is " + found + ", expected " + kind);
}

} // namespace enforcer
