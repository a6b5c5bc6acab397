// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
/* The smallest programs on our hooks: can this node load and attach them at all? They change nothing. */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct linux_binprm;

SEC("?lsm/bprm_creds_for_exec")
int BPF_PROG(probe_lsm, struct linux_binprm *bprm, int earlier)
{
	return earlier;
}

SEC("?fmod_ret/security_bprm_creds_for_exec")
int BPF_PROG(probe_fmod_ret, struct linux_binprm *bprm, int earlier)
{
	return earlier;
}
