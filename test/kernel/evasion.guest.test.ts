import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { mkdir, readFile, rmdir, symlink, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { DENIED, RUNS } from './attempts.ts';
import { bindPlace, enforce, LISTED, makePlace, policyOf, type Place } from './bound-place.ts';
import { PROGRAMS } from './guest-files.ts';
import { exactAttachments, openKernel, type Kernel } from './kernel.ts';

const ALLOWED = '/usr/bin/allowed';
const FORBIDDEN = '/usr/bin/forbidden';
/** The guest's own loader, and the library that its smallest programs need. */
const LOADERS: Partial<Record<NodeJS.Architecture, { readonly loader: string; readonly library: string }>> = {
  x64: { loader: '/lib64/ld-linux-x86-64.so.2', library: '/lib/x86_64-linux-gnu/libc.so.6' },
  arm64: { loader: '/lib/ld-linux-aarch64.so.1', library: '/lib/aarch64-linux-gnu/libc.so.6' },
};

for (const kind of exactAttachments()) {
  describe(`who enters from outside, and files with several names, by ${kind}`, () => {
    let kernel: Kernel;
    let place: Place;
    let other: Place;
    let inside: string;

    before(async () => {
      kernel = await openKernel(kind);
      place = await makePlace(kernel, `evasion-${kind}`);
      other = await makePlace(kernel, `evaded-${kind}`);
      inside = `/proc/${place.pid}/root`;
      await enforce(
        kernel,
        place,
        policyOf('evasion', 'protect', [...LISTED, '/srv/bound/allowed', '/srv/file', '/opt/loader']),
      );
      await mkdir(`${inside}/tmp/jail/usr/bin`, { recursive: true });
      await writeFile(`${inside}/tmp/jail${ALLOWED}`, await readFile(`${PROGRAMS}/marker`), { mode: 0o755 });
    });
    after(async () => {
      await other.close();
      await place.close();
      await kernel.stop();
    });

    // The parent of such a process is outside, as that of a runtime's helper is: no exemption may come of it.
    for (const { argv, reason } of DENIED) {
      it(`field 26, 38: denies ${argv[0]} to who entered from outside`, async () => {
        const counted = await kernel.counted(async () => {
          const { code, stdout, stderr } = await place.enter('attack', ...argv);
          strictEqual(code, 66, stdout + stderr);
        });
        strictEqual(counted['denied'], 1, JSON.stringify(counted));
        strictEqual(counted['bootstrap'], undefined);
        if (reason !== undefined) strictEqual(counted[reason], 1, JSON.stringify(counted));
      });
    }

    it('lets who entered from outside run what is listed', async () => {
      for (const argv of RUNS) {
        const { code, stdout, stderr } = await place.enter('attack', ...argv);
        strictEqual(code, 0, `${argv.join(' ')}: ${stdout}${stderr}`);
      }
    });

    it('field 36: decides for who entered the mount namespace only, as nsenter does', async () => {
      const counted = await kernel.counted(async () => {
        strictEqual((await place.enterMounts('attack', 'plain', FORBIDDEN)).code, 66);
        strictEqual((await place.enterMounts('attack', 'plain', ALLOWED)).code, 0);
        strictEqual((await place.enterMounts('attack', 'vfork-sibling', FORBIDDEN)).code, 66);
        strictEqual((await place.enterMounts('attack', 'memfd', FORBIDDEN, 'usr/bin/allowed')).code, 66);
      });
      strictEqual(counted['escaped_cgroup'], 4, JSON.stringify(counted));
      strictEqual(counted['bootstrap'], undefined);
    });

    it('field 29: known gap: an inner runtime takes its programs out of the cgroup and the mount namespace: untracked', async () => {
      const beside = `${kernel.tree.root}/k/inner-${kind}`;
      await mkdir(beside);
      const attempt = ['user-pivot', '/tmp/jail', ALLOWED] as const;
      const both = await kernel.counted(async () => {
        const { code, stdout, stderr } = await place.enterFrom(beside, 'attack', ...attempt);
        strictEqual(code, 0, stdout + stderr);
      });
      ok((both['untracked'] ?? 0) >= 1, JSON.stringify(both));
      strictEqual(both['denied'], undefined);
      // Either step alone does not take it out.
      const namespaceOnly = await kernel.counted(async () =>
        strictEqual((await place.enter('attack', ...attempt)).code, 66),
      );
      strictEqual(namespaceOnly['other_mount_namespace'], 1, JSON.stringify(namespaceOnly));
      const cgroupOnly = await kernel.counted(async () =>
        strictEqual((await place.enterFrom(beside, 'attack', 'plain', FORBIDDEN)).code, 66),
      );
      strictEqual(cgroupOnly['escaped_cgroup'], 1, JSON.stringify(cgroupOnly));
      await rmdir(beside);
    });

    it('field 36: denies the mount namespace of a container without a policy', async () => {
      const counted = await kernel.counted(async () =>
        strictEqual(
          await place.exec('/opt/attack', 'setns', String(other.pid), ALLOWED),
          'exit 66',
          place.output(),
        ),
      );
      strictEqual(counted['other_mount_namespace'], 1, JSON.stringify(counted));
    });

    it('field 36: decides as the other container for who entered the namespace of one', async () => {
      const slot = bindPlace(kernel, other, 0, true);
      await kernel.slots.release(slot);
      const bound = await enforce(kernel, other, policyOf('evaded', 'protect', [FORBIDDEN]));
      strictEqual(await place.exec('/opt/attack', 'setns', String(other.pid), ALLOWED), 'exit 66');
      strictEqual(await place.exec('/opt/attack', 'setns', String(other.pid), FORBIDDEN), 'ran');
      await bound.unbind();
    });

    it('field 7, 8: follows a symlink to the file, whatever the link is called', async () => {
      await symlink(FORBIDDEN, `${inside}/tmp/link`);
      await symlink(ALLOWED, `${inside}/tmp/other-link`);
      strictEqual(await place.exec('/tmp/link'), 'EPERM');
      strictEqual(await place.exec('/tmp/other-link'), 'ran');
      await kernel.event({ text: FORBIDDEN });
    });

    it('field 17: denies a copy of a listed program under another name', async () => {
      deepStrictEqual(await place.askAll([['+', ALLOWED, '/tmp/copy'], ['/tmp/copy']]), ['made', 'EPERM']);
    });

    it('names a file of a bind mount by the mount that it was started from', async () => {
      deepStrictEqual(
        await place.askAll([
          ['bind', '/usr/bin', '/srv/bound'],
          ['bind', FORBIDDEN, '/srv/file'],
          ['bind', ALLOWED, '/srv/unlisted'],
        ]),
        ['made', 'made', 'made'],
      );
      strictEqual(await place.exec('/srv/bound/allowed'), 'ran');
      strictEqual(await place.exec('/srv/bound/forbidden'), 'EPERM');
      strictEqual(await place.exec('/srv/unlisted'), 'EPERM');
      // Listed by that name, so whoever may mount decides what it is.
      strictEqual(await place.exec('/srv/file'), 'ran');
      await kernel.event({ text: '/srv/bound/forbidden' });
      await kernel.event({ text: '/srv/unlisted' });
    });

    it('field 11: sees a script once, and not its interpreter', async () => {
      await writeFile(`${inside}/tmp/script`, `#!${FORBIDDEN}\n`, { mode: 0o755 });
      const counted = await kernel.counted(async () => strictEqual(await place.exec('/tmp/script'), 'EPERM'));
      deepStrictEqual([counted['denied'], counted['allowed']], [1, undefined]);
    });

    it('field 15: known gap: a listed loader starts a file that nobody may execute; one that is not listed is denied', async () => {
      const { loader, library } = LOADERS[process.arch] ?? {};
      if (loader === undefined || library === undefined)
        throw new Error(`no loader known of ${process.arch}`);
      await mkdir(`${inside}/opt/lib`);
      await writeFile(`${inside}/opt/lib/libc.so.6`, await readFile(library), { mode: 0o755 });
      for (const name of ['loader', 'other-loader'])
        await writeFile(`${inside}/opt/${name}`, await readFile(loader), { mode: 0o755 });
      await writeFile(`${inside}/opt/quiet`, await readFile('/usr/bin/true'), { mode: 0o644 });
      const load = ['--library-path', '/opt/lib', '/opt/quiet'];
      const counted = await kernel.counted(async () => {
        strictEqual(await place.exec('/opt/quiet'), 'EACCES');
        strictEqual(await place.exec('/opt/loader', ...load), 'ran', place.output());
        strictEqual(await place.exec('/opt/other-loader', ...load), 'EPERM');
      });
      // Of the file itself the kernel asks nobody.
      deepStrictEqual([counted['allowed'], counted['denied']], [1, 1]);
      await kernel.event({ text: '/opt/other-loader' });
    });

    it('field 50: denies the same program every time', async () => {
      const answers = await place.askAll(Array.from({ length: 300 }, () => [FORBIDDEN]));
      deepStrictEqual(new Set(answers), new Set(['EPERM']));
    });
  });
}
