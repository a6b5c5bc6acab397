// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_ENFORCER_MESSAGES_H
#define RUNTIME_ENFORCER_MESSAGES_H

#include <string>

namespace enforcer
{

/*
 * Collects what libbpf says on this thread while the object lives; otherwise libbpf is silent. When a program
 * does not load, libbpf loads it again with the verifier's log and reports that as a message of its own.
 */
class Messages
{
      public:
	Messages();
	~Messages();
	Messages(const Messages &) = delete;
	Messages &operator=(const Messages &) = delete;

	/* libbpf's warnings in one line, the oldest cut off beyond 2 KiB. */
	const std::string &warnings() const
	{
		return warnings_;
	}
	/* The last 64 KiB of the verifier's log, where there is one. */
	const std::string &verifier_log() const
	{
		return verifier_log_;
	}
	void add(const std::string &message);

	/* " (libbpf: ...)", or nothing: to be put behind an error's reason. */
	std::string suffix() const;

      private:
	Messages *outer_;
	std::string warnings_;
	std::string verifier_log_;
};

/* Takes libbpf's messages away from stderr, for the whole process. */
void silence_libbpf();

} // namespace enforcer

#endif
