// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_ENFORCER_TASK_H
#define RUNTIME_ENFORCER_TASK_H

#include <exception>
#include <functional>
#include <optional>

#include <napi.h>

#include "failure.h"

namespace enforcer
{

/* Work outside JavaScript's loop. `work` must touch no JavaScript value and own all that it reads. */
template <typename Result> class Task : public Napi::AsyncWorker
{
      public:
	using Work = std::function<Result()>;
	using Deliver = std::function<Napi::Value(Napi::Env, Result &)>;

	/* Starts `work` on a thread of Node's pool; `deliver` makes the promise's value of its result. */
	static Napi::Value start(Napi::Env env, Work work, Deliver deliver)
	{
		auto *task = new Task(env, std::move(work), std::move(deliver));
		const Napi::Promise promise = task->deferred_.Promise();
		task->Queue();
		return promise;
	}

      protected:
	void Execute() override
	{
		try {
			result_.emplace(work_());
		} catch (const Failure &failure) {
			failure_ = failure;
			SetError(failure.message);
		} catch (const std::exception &unexpected) {
			SetError(unexpected.what());
		}
	}
	void OnOK() override
	{
		settle([this] { deferred_.Resolve(deliver_(Env(), *result_)); });
	}
	void OnError(const Napi::Error &error) override
	{
		settle([&] {
			deferred_.Reject(failure_ ? to_javascript(Env(), *failure_).Value() : error.Value());
		});
	}

      private:
	Task(Napi::Env env, Work work, Deliver deliver)
	    : Napi::AsyncWorker(env, "runtime-enforcer"), deferred_(Napi::Promise::Deferred::New(env)),
	      work_(std::move(work)), deliver_(std::move(deliver))
	{
	}

	/* All that can fail here is JavaScript that is being shut down; nobody waits for the promise then. */
	template <typename Settle> static void settle(Settle action)
	{
		try {
			action();
		} catch (const Napi::Error &) {
		}
	}

	Napi::Promise::Deferred deferred_;
	Work work_;
	Deliver deliver_;
	std::optional<Result> result_;
	std::optional<Failure> failure_;
};

} // namespace enforcer

#endif
