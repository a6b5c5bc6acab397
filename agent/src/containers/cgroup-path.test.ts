import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CgroupPathError, resolveCgroupPath } from './cgroup-path.ts';

describe('resolveCgroupPath', () => {
  it.each([
    [
      'kubepods-besteffort-pod1_2.slice:cri-containerd:abc',
      '/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1_2.slice/cri-containerd-abc.scope',
    ],
    ['system.slice:crio:abc', '/system.slice/crio-abc.scope'],
    ['-.slice:crio:abc', '/crio-abc.scope'],
    ['a-b.slice:crio:c.slice', '/a.slice/a-b.slice/c.slice'],
    ['a.slice::c.slice', '/a.slice/c.slice'],
    ['a.slice:p:..', '/a.slice/p-...scope'],
  ])('expands the systemd form %s', (given, path) => {
    expect(resolveCgroupPath(given)).toBe(path);
  });

  it.each([
    ['/kubepods/besteffort/pod1/abc', '/kubepods/besteffort/pod1/abc'],
    ['/k8s.io/a:b:c', '/k8s.io/a:b:c'],
    ['//a///b/', '/a/b'],
    ['/...', '/...'],
  ])('takes the cgroupfs form %s', (given, path) => {
    expect(resolveCgroupPath(given)).toBe(path);
  });

  it.each([
    ['', 'expected "slice:prefix:name" or an absolute path'],
    ['abc', 'expected "slice:prefix:name" or an absolute path'],
    ['a.slice:b', 'expected "slice:prefix:name" or an absolute path'],
    ['a.slice:b:c:d', 'expected "slice:prefix:name" or an absolute path'],
    ['a:b:c', 'the slice must end with ".slice"'],
    [':b:c', 'the slice must end with ".slice"'],
    ['.slice:b:c', 'the slice has an empty part'],
    ['a--b.slice:b:c', 'the slice has an empty part'],
    ['-a.slice:b:c', 'the slice has an empty part'],
    ['a-.slice:b:c', 'the slice has an empty part'],
    ['--.slice:b:c', 'the slice has an empty part'],
    ['a.slice:b:', 'the name after the second ":" is empty'],
    ['a.slice::c', 'the prefix between the two ":" is empty'],
    ['a/b.slice:c:d', 'a path must be absolute'],
    ['a.slice:b:../../c', 'a path must be absolute'],
    ['kubepods/pod1', 'a path must be absolute'],
    ['/', 'it must not be the root of the tree'],
    ['/a/../b', 'it must not hold "." or ".."'],
    ['/a/./b', 'it must not hold "." or ".."'],
    ['/a\0b', 'it must not hold a zero byte'],
    ['a.slice:b:c\0', 'it must not hold a zero byte'],
    [`/${'x'.repeat(256)}`, 'no part may be longer than 255 bytes'],
    [`a.slice:b:${'x'.repeat(250)}`, 'no part may be longer than 255 bytes'],
    ['/a'.repeat(2_048), 'it must not be longer than 4095 bytes'],
    [`${'a-'.repeat(1_000)}a.slice:b:c`, 'it must not be longer than 4095 bytes'],
  ])('refuses %s', (given, expected) => {
    expect(() => resolveCgroupPath(given)).toThrow(CgroupPathError);
    expect(() => resolveCgroupPath(given)).toThrow(expected);
  });

  it('takes parts and paths of the largest size', () => {
    const part = `/${'x'.repeat(255)}`;
    const longest = part.repeat(15) + `/${'x'.repeat(254)}`;
    expect(longest).toHaveLength(4_095);
    expect(resolveCgroupPath(longest)).toBe(longest);
  });

  it('never leaves the tree, whatever the text', () => {
    const unit = fc.constantFrom('a', '-', '.', '/', ':', '.slice', '..', '\0', '\ud800', 'é');
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 14 }), (units) => {
        let path: string;
        try {
          path = resolveCgroupPath(units.join(''));
        } catch (error) {
          expect(error).toBeInstanceOf(CgroupPathError);
          return;
        }
        expect(path).toMatch(/^(\/(?!\.{1,2}(\/|$))[^/\0]+)+$/);
      }),
      { seed: 1_722_005, numRuns: 5_000 },
    );
  });
});
