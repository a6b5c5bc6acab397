import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import { DENIED, RUNS } from './attempts.ts';
import { PROGRAMS } from './guest-files.ts';
import { attachments, exactAttachments, openKernel, type Kernel } from './kernel.ts';
import { bindPlace, enforce, LISTED, makePlace, policyOf, type Place } from './bound-place.ts';
import { STORM_MIN, startStorm } from './storm.ts';

const run = promisify(execFile);
const VERIFIED_MAX = 250_000;

const available = attachments();
const exact = exactAttachments();

describe('the node', () => {
  it('has every attachment that its kernel is known for', async () => {
    const [major = 0, minor = 0] = (await readFile('/proc/sys/kernel/osrelease', 'utf8'))
      .split('.')
      .map(Number);
    const expected = major > 5 || minor > 11 ? ['lsm', 'fmod_ret'] : ['fmod_ret'];
    deepStrictEqual(available, expected);
  });
});

// Where the kernel may skip a program, counts are not exact; the suite of preemption looks at that.
describe('a kernel that may skip the program', () => {
  for (const kind of available.filter((each) => !exact.includes(each))) {
    it(`is told as degraded, and still attaches all three programs (${kind})`, async () => {
      const kernel = await openKernel(kind);
      deepStrictEqual(kernel.enforcer.attachment.programs, [
        'check_fmod_ret',
        'check_copy',
        'check_late_copy',
      ]);
      strictEqual(await kernel.enforcer.attached(), true);
      await kernel.stop();
    });
  }
});

for (const kind of exact) {
  describe(`decisions by ${kind}`, () => {
    let kernel: Kernel;
    let place: Place;
    let other: Place;
    let bound: Awaited<ReturnType<typeof enforce>>;

    before(async () => {
      await run('modprobe', ['overlay']);
      kernel = await openKernel(kind);
      place = await makePlace(kernel, `a-${kind}`);
      other = await makePlace(kernel, `b-${kind}`);
      bound = await enforce(kernel, place, policyOf('a', 'protect', LISTED));
    });
    after(async () => {
      await bound.unbind();
      await place.close();
      await other.close();
      await kernel.stop();
    });

    const load = async (policy: WorkloadPolicy): Promise<void> => {
      const { state, message } = await kernel.table.apply(policy);
      strictEqual(state, 'ready', message);
    };

    it('stays within the budget of the verifier', () => {
      for (const name of kernel.enforcer.attachment.programs) {
        const link = kernel.native.openPinnedLink(`/sys/fs/bpf/kernel-ring/abi-1/link_${name}`);
        const program = kernel.native.programById(link.programId);
        link.close();
        ok(program.verifiedInstructions < VERIFIED_MAX, `${name}: ${program.verifiedInstructions}`);
      }
    });

    it('lets a listed program run, and counts it', async () => {
      const counted = await kernel.counted(async () => {
        strictEqual(await place.exec('/usr/bin/allowed'), 'ran');
      });
      strictEqual(counted['allowed'], 1);
      strictEqual(counted['denied'], undefined);
    });

    it('denies an unlisted one with EPERM, counts it, and records it once', async () => {
      const counted = await kernel.counted(async () => {
        for (let i = 0; i < 3; i++) strictEqual(await place.exec('/usr/bin/forbidden'), 'EPERM');
      });
      strictEqual(counted['denied'], 3);
      strictEqual(counted['violation_repeated'], 2);
      const event = await kernel.event({ text: '/usr/bin/forbidden', kind: 'violation' });
      strictEqual(event.mode, 'protect');
      strictEqual(event.reason, 'Unlisted');
      strictEqual(event.origin, 'entrypoint');
      strictEqual(event.parentPid, place.pid);
      const seen = await kernel.enforcer.seen(() => undefined);
      strictEqual(seen.find(({ key }) => key === event.key)?.count, 3n);
      ok(kernel.enforcer.containerTotals(bound.slot.slot).violations >= 3n);
    });

    it('changes mode without a new binding: monitor reports, protect denies', async () => {
      await load(policyOf('a', 'monitor', LISTED));
      const counted = await kernel.counted(async () => {
        strictEqual(await place.exec('/usr/bin/forbidden'), 'ran');
      });
      strictEqual(counted['monitored'], 1);
      await kernel.event({ text: '/usr/bin/forbidden', mode: 'monitor' });
      await load(policyOf('a', 'protect', LISTED));
      strictEqual(await place.exec('/usr/bin/forbidden'), 'EPERM');
    });

    it('changes lists: what was added runs, what was removed does not', async () => {
      await load(policyOf('a', 'protect', ['/usr/bin/forbidden']));
      strictEqual(await place.exec('/usr/bin/forbidden'), 'ran');
      strictEqual(await place.exec('/usr/bin/allowed'), 'EPERM');
      await load(policyOf('a', 'protect', LISTED));
      strictEqual(await place.exec('/usr/bin/allowed'), 'ran');
    });

    it('counts the host as untracked and lets it alone', async () => {
      const counted = await kernel.counted(async () => await run(`${PROGRAMS}/tiny`));
      ok((counted['untracked'] ?? 0) >= 1);
      strictEqual(counted['denied'], undefined);
    });

    it('learns a container without a policy, and only what a list can hold', async () => {
      const slot = bindPlace(kernel, other, 0, true);
      const counted = await kernel.counted(async () => {
        strictEqual(await other.exec('/usr/bin/forbidden'), 'ran');
        strictEqual(await other.exec('/usr/bin/forbidden'), 'ran');
        strictEqual(await other.exec('/opt/attack', 'memfd', '/usr/bin/forbidden', 'usr/bin/allowed'), 'ran');
      });
      strictEqual(counted['learned'], 3);
      strictEqual(counted['learning_repeated'], 1);
      strictEqual(counted['memfd'], 1);
      await kernel.event({ kind: 'learned', text: '/usr/bin/forbidden' });
      strictEqual(
        kernel.events.some(({ kind: k, path }) => k === 'learned' && Buffer.from(path).includes('memfd')),
        false,
      );
      await kernel.slots.release(slot);
      const unbound = await kernel.counted(async () => await other.exec('/usr/bin/forbidden'));
      strictEqual(unbound['learned'], undefined);
    });

    it('obeys the override: monitor denies nothing, off checks nothing', async () => {
      kernel.enforcer.setOverride('monitor');
      strictEqual((await kernel.counted(async () => await place.exec('/usr/bin/forbidden')))['monitored'], 1);
      kernel.enforcer.setOverride('off');
      strictEqual(
        (await kernel.counted(async () => await place.exec('/usr/bin/forbidden')))['overridden'],
        1,
      );
      kernel.enforcer.setOverride('none');
      strictEqual(await place.exec('/usr/bin/forbidden'), 'EPERM');
    });

    it('denies a container whose policy word is gone (no_policy)', async () => {
      const slot = bindPlace(kernel, other, 4000, false);
      const counted = await kernel.counted(async () => {
        strictEqual(await other.exec('/usr/bin/allowed'), 'EPERM');
      });
      strictEqual(counted['no_policy'], 1);
      await kernel.slots.release(slot);
    });

    for (const argv of RUNS) {
      it(`lets a listed program run by ${argv[0]}`, async () => {
        strictEqual(await place.exec('/opt/attack', ...argv), 'ran', place.output());
      });
    }

    for (const { argv, reason } of DENIED) {
      it(`denies ${argv[0]}${reason === undefined ? '' : ` (${reason})`}`, async () => {
        strictEqual(await place.exec('/opt/pathlengths', 'print', 'lengths', '2', '2'), 'ran');
        const counted = await kernel.counted(async () => {
          strictEqual(await place.exec('/opt/attack', ...argv), 'exit 66', place.output());
        });
        strictEqual(counted['denied'], 1, JSON.stringify(counted));
        if (reason !== undefined) strictEqual(counted[reason], 1, JSON.stringify(counted));
      });
    }
    before(async () => {
      // A root in which the forbidden program has the path of the allowed one.
      const jail = `/proc/${place.pid}/root/tmp/jail/usr/bin`;
      await mkdir(jail, { recursive: true });
      await writeFile(`${jail}/allowed`, await readFile(`${PROGRAMS}/marker`), { mode: 0o755 });
    });

    it('sees who left its cgroup, by its mount namespace', async (t) => {
      const host = `/host-cgroups/k/escape-${kind}`;
      if (kernel.tree.subsystem >= 0) {
        t.skip('cgroup v1: the place sees the unified tree only');
        return;
      }
      await mkdir(`${kernel.tree.root}/k/escape-${kind}`);
      const counted = await kernel.counted(async () => {
        strictEqual(
          await place.exec('/opt/attack', 'leave-cgroup', host, '/usr/bin/forbidden'),
          'exit 66',
          place.output(),
        );
        strictEqual(
          await place.exec('/opt/attack', 'leave-cgroup', host, '/usr/bin/allowed'),
          'ran',
          place.output(),
        );
      });
      strictEqual(counted['escaped_cgroup'], 2, JSON.stringify(counted));
      await rmdir(`${kernel.tree.root}/k/escape-${kind}`);
    });

    it("sees who moved into another container's cgroup", async () => {
      const slot = bindPlace(kernel, other, 0, true);
      const host = `/host-cgroups/k/pod/${other.name}`;
      strictEqual(
        await place.exec('/opt/attack', 'leave-cgroup', host, '/usr/bin/forbidden'),
        'exit 66',
        place.output(),
      );
      await kernel.slots.release(slot);
    });

    it('finds nested cgroups, however deep', async () => {
      const counted = await kernel.counted(async () => {
        const denial = await place.enter('cgroups', 'nested', place.cgroup, '300', '/usr/bin/forbidden');
        strictEqual(denial.code, 66, denial.stderr + denial.stdout);
      });
      strictEqual(counted['nested_cgroup'], 1, JSON.stringify(counted));
      let directory = place.cgroup;
      const made: string[] = [];
      for (let depth = 0; depth < 300; depth++) made.push((directory += '/n'));
      for (const name of made.reverse()) await rmdir(name);
    });

    it('exempts a child that shares its memory with a parent outside, and nobody else', async () => {
      const exempt = await kernel.counted(async () => {
        const { stdout } = await run(`${PROGRAMS}/cgroups`, [
          'into-vfork',
          place.cgroup,
          `${PROGRAMS}/marker`,
        ]);
        ok(stdout.includes('marker: ran'));
      });
      strictEqual(exempt['bootstrap'], 1, JSON.stringify(exempt));
      const plain = await kernel.counted(async () => {
        await run(`${PROGRAMS}/cgroups`, ['into', place.cgroup, `${PROGRAMS}/marker`]).catch(
          (error: unknown) => {
            strictEqual((error as { code: number }).code, 66);
          },
        );
      });
      strictEqual(plain['denied'], 1, JSON.stringify(plain));
    });

    it('checks a script as itself, and its interpreter not at all', async () => {
      const script = `/proc/${place.pid}/root/tmp/script`;
      await writeFile(script, '#!/usr/bin/forbidden\n', { mode: 0o755 });
      strictEqual(await place.exec('/tmp/script'), 'EPERM');
      await load(policyOf('a', 'protect', [...LISTED, '/tmp/script']));
      strictEqual(await place.exec('/tmp/script'), 'ran');
      await load(policyOf('a', 'protect', LISTED));
    });

    it('answers AT_EXECVE_CHECK as an exec, without a record', async (t) => {
      const counted = await kernel.counted(async () => {
        const forbidden = await place.exec('/opt/execcheck', '/usr/bin/forbidden');
        if (forbidden === 'exit 68') return;
        strictEqual(forbidden, 'exit 66');
        strictEqual(await place.exec('/opt/execcheck', '/usr/bin/allowed'), 'ran');
      });
      const [major = 0, minor = 0] = (await readFile('/proc/sys/kernel/osrelease', 'utf8'))
        .split('.')
        .map(Number);
      if (major < 6 || (major === 6 && minor < 14)) {
        strictEqual(counted['check_only'], undefined);
        t.diagnostic('this kernel does not know AT_EXECVE_CHECK');
        return;
      }
      strictEqual(counted['check_only'], 2, JSON.stringify(counted));
      strictEqual(counted['denied'], undefined);
    });

    // One decision function serves both attachments; the thousands of paths are tried with the first.
    const isFirst = kind === available[0];
    const longRuns = isFirst ? it : (): void => undefined;
    void longRuns('holds paths of every length to its list, and denies what is one byte off', async () => {
      const longest = kernel.enforcer.attachment.pathBytesMax;
      const { stdout: paths } = await run(
        `${PROGRAMS}/pathlengths`,
        ['print', 'lengths', '2', String(longest)],
        {
          maxBuffer: 64 << 20,
        },
      );
      await load(policyOf('a', 'protect', paths.trimEnd().split('\n')));
      const { stdout, stderr } = await place.enter(
        ...(['pathlengths', 'run', '/usr/bin/allowed', '-', 'lengths', '2', '4095'] as const),
      );
      const expected: Record<string, unknown> = { listed: [[2, longest, 'ran']] };
      if (longest < 4095)
        expected['listed'] = [
          [2, longest, 'ran'],
          [longest + 1, 4095, 'EPERM'],
        ];
      expected['first'] = expected['last'] = [[2, 4095, 'EPERM']];
      deepStrictEqual(JSON.parse(stdout || `"${stderr}"`), expected);
      await load(policyOf('a', 'protect', LISTED));
    });

    it('holds paths of up to 2,047 components to its list', async () => {
      const counts = ['1', '2', '31', '32', '33', '64', '200', '250'];
      if (kernel.enforcer.attachment.pathBytesMax === 4095) counts.push('511', '512', '513', '1024', '2047');
      const { stdout: paths } = await run(`${PROGRAMS}/pathlengths`, ['print', 'components', ...counts]);
      await load(policyOf('a', 'protect', paths.trimEnd().split('\n')));
      const { stdout, stderr } = await place.enter(
        ...(['pathlengths', 'run', '/usr/bin/allowed', '-', 'components'] as const),
        ...counts,
      );
      const verdicts = JSON.parse(stdout || `"${stderr}"`) as Record<string, [number, number, string][]>;
      deepStrictEqual(new Set(verdicts['listed']?.map(([, , verdict]) => verdict)), new Set(['ran']));
      deepStrictEqual(new Set(verdicts['last']?.map(([, , verdict]) => verdict)), new Set(['EPERM']));
      await load(policyOf('a', 'protect', LISTED));
    });

    it('denies what lies deeper than a path can say', async () => {
      const counted = await kernel.counted(async () => {
        const { stdout, stderr } = await place.enter(
          'pathlengths',
          'run',
          '/usr/bin/allowed',
          '-',
          'deep',
          '5000',
          '9000',
        );
        deepStrictEqual(JSON.parse(stdout || `"${stderr}"`), {
          5000: { relative: 'EPERM', execveat: 'EPERM' },
          9000: { relative: 'EPERM', execveat: 'EPERM' },
        });
      });
      strictEqual(counted['too_long'], 4, JSON.stringify(counted));
    });

    it('known gap: an allowed file overwritten in place is allowed', async () => {
      strictEqual(
        await place.exec('/opt/attack', 'overwrite', '/usr/bin/forbidden', '/usr/bin/allowed'),
        'ran',
        place.output(),
      );
      ok(place.output().includes('marker: ran'));
      await writeFile(`/proc/${place.pid}/root/usr/bin/allowed`, await readFile(`${PROGRAMS}/tiny`));
    });

    it('known gap: a bind mount over an allowed path in the same namespace is allowed', async () => {
      strictEqual(
        await place.exec('/opt/attack', 'bind-over', '/usr/bin/forbidden', '/usr/bin/allowed'),
        'ran',
        place.output(),
      );
      await run('nsenter', ['-t', String(place.pid), '-m', '--', `${PROGRAMS}/tiny`]).catch(() => undefined);
    });

    it('decides rightly while list and mode change under a storm', async () => {
      const held = await enforce(kernel, other, policyOf('b', 'protect', LISTED));
      const storm = startStorm(other, 8, '/usr/bin/allowed', '/usr/bin/forbidden');
      const lists = [LISTED, [...LISTED, '/nowhere/1'], [...LISTED, '/nowhere/2', '/nowhere/3']];
      const end = Date.now() + 6_000;
      for (let i = 0; Date.now() < end; i++) {
        await kernel.table.apply(policyOf('b', 'protect', lists[i % lists.length] ?? LISTED));
      }
      const counts = await storm;
      const [allowed, forbidden] = [counts.of('/usr/bin/allowed'), counts.of('/usr/bin/forbidden')];
      deepStrictEqual([allowed.denied, forbidden.ran], [0, 0]);
      ok(allowed.ran >= STORM_MIN && forbidden.denied >= STORM_MIN, JSON.stringify({ allowed, forbidden }));
      await held.unbind();
    });
  });
}
