import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { attachableNative, type AttachableNative } from './attachable-example.ts';
import type { Attachment } from './attachment.ts';
import type { KernelEnforcer } from './enforcer.ts';
import { ABI_VERSION } from './gen/abi.ts';
import { EXAMPLE_FACTS, exampleLog } from './kernel-maps-example.ts';
import { loadNative } from './native.ts';
import { ENFORCER_OBJECT, key, mountBpfFs, RECORDS_OBJECT, value } from './native-test-objects.ts';
import { inspectNode, releaseNode, setOverrideOnNode } from './node-control.ts';
import { openEnforcer, type OpenOptions } from './open-enforcer.ts';

const LSM: Attachment = { kind: 'lsm', programs: ['check_lsm'], reason: 'the BPF LSM is active.' };
const COPIES: Attachment = {
  kind: 'fmod_ret',
  programs: ['check_fmod_ret', 'check_copy', 'check_late_copy'],
  reason: 'there is no BPF LSM.',
  degraded: 'an exec may pass.',
};
const ABI = `abi-${ABI_VERSION}`;

describe('opening the enforcer', () => {
  let bpfFs: ReturnType<typeof mountBpfFs>;
  let pinRoot: string;
  let native: AttachableNative;
  let logged: ReturnType<typeof exampleLog>;
  let opened: KernelEnforcer[];

  beforeAll(() => {
    bpfFs = mountBpfFs();
  });
  afterAll(() => bpfFs.remove());
  beforeEach(() => {
    pinRoot = join(bpfFs.path, 'runtime-enforcer');
    native = attachableNative(loadNative());
    logged = exampleLog();
    opened = [];
  });
  afterEach(async () => {
    for (const enforcer of opened) await enforcer.stop({ release: false });
    await releaseNode(pinRoot);
    expect(existsSync(pinRoot)).toBe(false);
  });

  const open = async (change: Partial<OpenOptions> = {}): Promise<KernelEnforcer> => {
    const enforcer = await openEnforcer({
      native,
      log: logged.log,
      countFailure: (place) => expect.fail(place),
      objectPath: ENFORCER_OBJECT,
      facts: EXAMPLE_FACTS,
      attachment: LSM,
      kernelRelease: '6.12.0',
      capacity: 128,
      pinRoot,
      ...change,
    });
    opened.push(enforcer);
    return enforcer;
  };
  const names = (directory = ABI): string[] => readdirSync(join(pinRoot, directory)).sort();
  const links = (): string[] => names().filter((name) => name.startsWith('link_'));
  const programId = (program: string): number => {
    const link = native.openPinnedLink(join(pinRoot, ABI, `link_${program}`));
    link.close();
    return link.programId;
  };
  const mark = (enforcer: KernelEnforcer): void => enforcer.maps.policies.update(key(7), value(77n));
  const marked = (enforcer: KernelEnforcer): boolean => enforcer.maps.policies.lookup(key(7))?.[0] === 77;

  it('attaches and pins where nothing is, and lets containers be nowhere', async () => {
    const enforcer = await open();
    expect(enforcer.attachment).toMatchObject({ kind: 'lsm', adopted: 'fresh', pathBytesMax: 4095 });
    expect(enforcer.pending).toBe(false);
    expect(links()).toEqual(['link_check_lsm']);
    expect(names().filter((name) => name.startsWith('build_'))).toHaveLength(1);
    expect(names()).toContain('map_cgroups');
    expect(names()).not.toContain('map_scratches');
    expect(enforcer.settings.levels()).toBeUndefined();
    expect(await enforcer.attached()).toBe(true);
    expect(await enforcer.outcomes()).toMatchObject({ denied: 0n, untracked: 0n });
    expect(enforcer.recursionMisses()).toBe(0n);
    expect(enforcer.containerTotals(3)).toEqual({ violations: 0n, learned: 0n });
    expect(await enforcer.seen(() => undefined)).toEqual([]);
  });

  it('says what was chosen and why, as a warning where the node is degraded', async () => {
    await open({ attachment: COPIES });
    const line = logged.lines.find(({ message }) => message.startsWith('checking execs'));
    expect(line).toMatchObject({ level: 'warn', fields: { kind: 'fmod_ret+copies', adopted: 'fresh' } });
    expect(links()).toHaveLength(3);
  });

  it('adopts maps and links of the same build without loading a program', async () => {
    const first = await open();
    mark(first);
    const id = programId('check_lsm');
    await first.stop({ release: false });
    const second = await open();
    expect(second.attachment.adopted).toBe('adopted');
    expect(native.loads).toHaveLength(1);
    expect(programId('check_lsm')).toBe(id);
    expect(marked(second)).toBe(true);
  });

  it('puts another build over the same maps, the old link ending after the new one began', async () => {
    mark(await open());
    const id = programId('check_lsm');
    native.onAttach = () => expect(programId('check_lsm')).toBe(id);
    const second = await open({ kernelRelease: '6.12.1' });
    expect(second.attachment.adopted).toBe('replaced');
    expect(second.pending).toBe(false);
    expect(programId('check_lsm')).not.toBe(id);
    expect(links()).toEqual(['link_check_lsm']);
    expect(marked(second)).toBe(true);
  });

  it('changes the attachment over the same maps', async () => {
    mark(await open());
    const attached: string[] = [];
    native.onAttach = (program) => void attached.push(program);
    const second = await open({ attachment: COPIES });
    // The kernel runs the last one first, and that is the one that speaks.
    expect(attached).toEqual(['check_late_copy', 'check_copy', 'check_fmod_ret']);
    expect(second.attachment.adopted).toBe('replaced');
    expect(links()).toEqual(['link_check_copy', 'link_check_fmod_ret', 'link_check_late_copy']);
    expect(marked(second)).toBe(true);
    await open();
    expect(links()).toEqual(['link_check_lsm']);
  });

  it('field 73: fails when a program cannot be attached, and leaves what decides alone', async () => {
    await open();
    const id = programId('check_lsm');
    native.onAttach = (program) => {
      if (program === 'check_fmod_ret') throw new Error('EPERM');
    };
    await expect(open({ attachment: COPIES })).rejects.toThrow('EPERM');
    expect(links()).toEqual(['link_check_lsm']);
    expect(programId('check_lsm')).toBe(id);
    native.onAttach = () => undefined;
    expect((await open()).attachment.adopted).toBe('replaced');
  });

  it('field 72: fails with the reasons of the verifier where it rejects the program, and leaves what decides alone', async () => {
    await open();
    const id = programId('check_lsm');
    const rejecting: typeof native = {
      ...native,
      load(path, options) {
        if (options.programs.length === 0) return native.load(path, options);
        return loadNative().load(RECORDS_OBJECT, { programs: ['rejected'] });
      },
    };
    await expect(open({ native: rejecting, kernelRelease: '6.18.0' })).rejects.toMatchObject({
      code: 'EACCES',
    });
    expect(logged.lines.at(-1)).toMatchObject({
      level: 'error',
      fields: {
        kernel: '6.18.0',
        verifierLog: expect.stringContaining('invalid mem access') as string,
      },
    });
    expect(programId('check_lsm')).toBe(id);
    await expect(open({ native: rejecting, capacity: 256 })).rejects.toMatchObject({ operation: 'load' });
    expect(readdirSync(pinRoot)).toEqual([ABI]);
  });

  it('attaches again what somebody took off', async () => {
    await open({ attachment: COPIES });
    unlinkSync(join(pinRoot, ABI, 'link_check_copy'));
    expect((await open({ attachment: COPIES })).attachment.adopted).toBe('replaced');
    expect(links()).toHaveLength(3);
  });

  it('lets maps of other sizes take effect only when they are filled', async () => {
    const first = await open();
    mark(first);
    const id = programId('check_lsm');
    const second = await open({ capacity: 256 });
    expect(second.attachment.adopted).toBe('replaced');
    expect(second.pending).toBe(true);
    expect(marked(second)).toBe(false);
    expect(programId('check_lsm')).toBe(id);
    second.maps.policies.update(key(8), value(88n));
    await second.commit();
    await second.commit();
    expect(second.pending).toBe(false);
    expect(programId('check_lsm')).not.toBe(id);
    expect(readdirSync(pinRoot)).toEqual([ABI]);
    expect(second.recursionMisses()).toBe(0n);
    await second.stop({ release: false });
    const third = await open({ capacity: 256 });
    expect(third.attachment.adopted).toBe('adopted');
    expect(third.maps.policies.lookup(key(8))?.[0]).toBe(88);
  });

  it('replaces another ABI, and goes on with it when the new program cannot be attached', async () => {
    await open();
    const other = 'abi-1000';
    renameSync(join(pinRoot, ABI), join(pinRoot, other));
    native.onAttach = () => {
      throw new Error('EPERM');
    };
    const second = await open();
    expect(second.pending).toBe(true);
    await expect(second.commit()).rejects.toThrow('EPERM');
    expect(second.pending).toBe(true);
    expect(readdirSync(pinRoot)).toEqual([other]);
    native.onAttach = () => expect(names(other)).toContain('link_check_lsm');
    await second.commit();
    expect(readdirSync(pinRoot)).toEqual([ABI]);
    expect(links()).toEqual(['link_check_lsm']);
  });

  it('finishes what a killed agent had completed', async () => {
    const first = await open();
    mark(first);
    renameSync(join(pinRoot, ABI), join(pinRoot, `${ABI}_next`));
    mkdirSync(join(pinRoot, 'abi-1000'));
    const second = await open();
    expect(second.attachment.adopted).toBe('adopted');
    expect(marked(second)).toBe(true);
    expect(readdirSync(pinRoot)).toEqual([ABI]);
  });

  it('removes what a killed agent had not completed', async () => {
    await open();
    mkdirSync(join(pinRoot, `${ABI}_next`));
    const second = await open();
    expect(second.attachment.adopted).toBe('adopted');
    expect(readdirSync(pinRoot)).toEqual([ABI]);
  });

  it('puts right what an agent left that was killed between two links', async () => {
    await open({ attachment: COPIES });
    const [build = ''] = names().filter((name) => name.startsWith('build_'));
    rmdirSync(join(pinRoot, ABI, build));
    renameSync(join(pinRoot, ABI, 'link_check_copy'), join(pinRoot, ABI, 'link_check_copy_new'));
    expect((await open({ attachment: COPIES })).attachment.adopted).toBe('replaced');
    expect(links()).toHaveLength(3);
  });

  it('releases everything', async () => {
    const enforcer = await open({ attachment: COPIES });
    await enforcer.stop({ release: true });
    opened = [];
    expect(existsSync(pinRoot)).toBe(false);
  });

  describe('from the command line', () => {
    it('is overridden beside the agent, and keeps the levels that it looks at', async () => {
      const enforcer = await open();
      enforcer.settings.coverLevels(3, 4);
      await setOverrideOnNode(native, 'monitor', pinRoot);
      expect(enforcer.override()).toBe('monitor');
      expect(enforcer.settings.levels()).toEqual({ shallowest: 3, deepest: 4 });
      enforcer.settings.coverLevels(5, 5);
      expect(enforcer.override()).toBe('monitor');
      expect(await inspectNode(native, pinRoot)).toEqual([
        { abi: ABI_VERSION, programs: ['check_lsm'], override: 'monitor' },
      ]);
      await setOverrideOnNode(native, 'none', pinRoot);
      expect(enforcer.override()).toBe('none');
    });

    it('is released beside the agent, which notices', async () => {
      const enforcer = await open();
      expect(await releaseNode(pinRoot)).toEqual([ABI]);
      expect(await releaseNode(pinRoot)).toEqual([]);
      expect(await enforcer.attached()).toBe(false);
      expect(enforcer.recursionMisses()).toBe(0n);
    });

    it('says what to do where nothing of this version is pinned', async () => {
      await expect(setOverrideOnNode(native, 'off', pinRoot)).rejects.toThrow('nothing is pinned under');
      mkdirSync(join(pinRoot, 'abi-1000'), { recursive: true });
      await expect(setOverrideOnNode(native, 'off', pinRoot)).rejects.toThrow('is of ABI 1000');
    });
  });
});
