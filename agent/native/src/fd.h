// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_ENFORCER_FD_H
#define RUNTIME_ENFORCER_FD_H

#include <unistd.h>

namespace enforcer
{

/* Owns a file descriptor. */
class Fd
{
      public:
	explicit Fd(int fd = -1) : fd_(fd)
	{
	}
	Fd(Fd &&other) noexcept : fd_(other.fd_)
	{
		other.fd_ = -1;
	}
	Fd(const Fd &) = delete;
	Fd &operator=(const Fd &) = delete;
	Fd &operator=(Fd &&) = delete;
	~Fd()
	{
		if (fd_ >= 0)
			close(fd_);
	}
	int get() const
	{
		return fd_;
	}
	bool valid() const
	{
		return fd_ >= 0;
	}

      private:
	int fd_;
};

} // namespace enforcer

#endif
