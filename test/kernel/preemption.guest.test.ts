import { ok, strictEqual } from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { AttachmentKind } from '@runtime-enforcer/agent/kernel/attachment';
import { openKernel } from './kernel.ts';
import { enforce, LISTED, makePlace, policyOf } from './bound-place.ts';

const run = promisify(execFile);
/** Two loops of forbidden execs and one of allowed ones share the only CPU. */
const FORBIDDEN_EXECS = 24_000;
const LONGEST_S = '400';

interface Counts {
  readonly ran: number;
  readonly denied: number;
  readonly other: number;
}

interface Storm {
  readonly forbidden: Counts;
  readonly allowed: Counts;
  readonly misses: bigint;
  readonly caught: number;
  readonly degraded: string | undefined;
  /** Paths of all records. */
  readonly recorded: ReadonlySet<string>;
}

/** Runs forbidden execs beside allowed ones on one CPU, under an attachment. */
async function storm(kind: AttachmentKind): Promise<Storm> {
  const kernel = await openKernel(kind);
  const place = await makePlace(kernel, `storm-${kind}`);
  const bound = await enforce(kernel, place, policyOf('storm', 'protect', LISTED));
  const before = await kernel.enforcer.outcomes();
  const { stdout, stderr } = await place.enter(
    'execstorm',
    ...['--cpu', '0', '--seconds', LONGEST_S, '--count', String(FORBIDDEN_EXECS)],
    ...['/usr/bin/forbidden@200', '/usr/bin/forbidden@200', '/usr/bin/allowed'],
  );
  const outcomes = await kernel.enforcer.outcomes();
  const { paths } = JSON.parse(stdout.slice(stdout.lastIndexOf('{"seconds"')) || `"${stderr}"`) as {
    paths: Record<string, Counts>;
  };
  const none = { ran: 0, denied: 0, other: 0 };
  const result = {
    forbidden: paths['/usr/bin/forbidden'] ?? none,
    allowed: paths['/usr/bin/allowed'] ?? none,
    misses: kernel.enforcer.recursionMisses(),
    caught: Number((outcomes['caught_by_copy'] ?? 0n) - (before['caught_by_copy'] ?? 0n)),
    degraded: kernel.enforcer.attachment.degraded,
    recorded: new Set(kernel.events.map(({ path }) => Buffer.from(path).toString('latin1'))),
  };
  await bound.unbind();
  await place.close();
  await kernel.stop();
  return result;
}

describe('on a kernel that preempts, with one CPU', () => {
  before(async () => await run('modprobe', ['overlay']));
  after(() => undefined);

  it('lets no forbidden exec pass, denies no allowed one and mixes no path, as an LSM program', async (t) => {
    const { forbidden, allowed, misses, recorded } = await storm('lsm');
    t.diagnostic(`${forbidden.denied} denied, ${allowed.ran} allowed, ${misses} misses`);
    strictEqual(forbidden.ran, 0);
    ok(forbidden.denied >= FORBIDDEN_EXECS, `only ${forbidden.denied} forbidden execs`);
    strictEqual(allowed.denied, 0);
    strictEqual(misses, 0n);
    strictEqual([...recorded].join(), '/usr/bin/forbidden');
  });

  it('counts what a tracing program is skipped for, and says that the node is degraded', async (t) => {
    const { forbidden, allowed, misses, caught, degraded, recorded } = await storm('fmod_ret');
    t.diagnostic(
      `${forbidden.ran} of ${forbidden.ran + forbidden.denied} passed, ${misses} misses, ${caught} caught by a copy`,
    );
    ok(degraded?.includes('lsm='), `not degraded: ${degraded ?? ''}`);
    ok(misses > 0n, 'no miss: this run proves nothing');
    strictEqual(allowed.denied, 0);
    strictEqual([...recorded].join(), '/usr/bin/forbidden');
  });
});
