// SPDX-License-Identifier: Apache-2.0
#include "messages.h"

#include <cstdarg>
#include <cstdio>
#include <exception>

#include <bpf/libbpf.h>

namespace enforcer
{

static constexpr size_t WARNINGS_BYTES_MAX = 2 * 1024;
static constexpr size_t VERIFIER_LOG_BYTES_MAX = 64 * 1024;
static const std::string LOG_BEGIN = "-- BEGIN PROG LOAD LOG --";
static const std::string LOG_END = "-- END PROG LOAD LOG --";

/* A guess of libbpf's at the reason of any EPERM; on kernels from 5.11 on it is never right. */
static const std::string MISLEADING_HINT = "permission error while running as root";

static thread_local Messages *current = nullptr;

static int print(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (!current || level != LIBBPF_WARN)
		return 0;
	try {
		va_list again;
		va_copy(again, arguments);
		const int length = vsnprintf(nullptr, 0, format, again);
		va_end(again);
		if (length <= 0)
			return 0;
		std::string message(static_cast<size_t>(length), '\0');
		vsnprintf(message.data(), message.size() + 1, format, arguments);
		current->add(message);
	} catch (const std::exception &) {
		/* Out of memory for a message: the error itself still arrives. */
	}
	return 0;
}

static void keep_tail(std::string &text, size_t bytes_max)
{
	if (text.size() > bytes_max)
		text.erase(0, text.size() - bytes_max);
}

Messages::Messages() : outer_(current)
{
	current = this;
}

Messages::~Messages()
{
	current = outer_;
}

void Messages::add(const std::string &message)
{
	const size_t begin = message.find(LOG_BEGIN);

	if (begin != std::string::npos) {
		const size_t start = begin + LOG_BEGIN.size() + 1;
		const size_t end = message.rfind(LOG_END);
		if (end != std::string::npos && start < end) {
			verifier_log_ += message.substr(start, end - start);
			keep_tail(verifier_log_, VERIFIER_LOG_BYTES_MAX);
		}
		return;
	}
	if (message.find(MISLEADING_HINT) != std::string::npos)
		return;
	std::string line = message.compare(0, 8, "libbpf: ") == 0 ? message.substr(8) : message;
	while (!line.empty() && line.back() == '\n')
		line.pop_back();
	warnings_ += (warnings_.empty() ? "" : "; ") + line;
	keep_tail(warnings_, WARNINGS_BYTES_MAX);
}

std::string Messages::suffix() const
{
	return warnings_.empty() ? "" : "; libbpf says: " + warnings_;
}

void silence_libbpf()
{
	libbpf_set_print(print);
}

} // namespace enforcer
