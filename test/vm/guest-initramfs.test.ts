import { describe, expect, it } from 'vitest';
import { type GuestRun, runArchive } from './guest-initramfs.ts';

const run: GuestRun = {
  mark: '@m',
  cgroups: 'v2',
  containerd: false,
  command: ['true'],
  env: {},
  payload: [],
};

describe('runArchive', () => {
  it('refuses a payload path outside /run/payload', async () => {
    for (const path of ['/etc/passwd', 'relative', '/run/payload', '/run/payload/../x', '/run/payload/']) {
      await expect(runArchive({ ...run, payload: [{ path, source: new Uint8Array() }] })).rejects.toThrow(
        RangeError,
      );
    }
  });

  it('holds the command, the settings and the payload', async () => {
    const archive = await runArchive({
      ...run,
      cgroups: 'hybrid',
      containerd: true,
      command: ['echo', 'a b'],
      payload: [{ path: '/run/payload/x/y', source: Buffer.from('payload bytes') }],
    });
    const text = archive.toString('latin1');
    expect(text).toContain("exec 'echo' 'a b'\n");
    expect(text).toContain("CGROUPS='hybrid'\nCONTAINERD='yes'\n");
    expect(text).toContain('payload/x/y\0');
    expect(text).toContain('payload bytes');
  });
});
