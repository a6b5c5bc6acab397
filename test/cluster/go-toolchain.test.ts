import { describe, expect, it } from 'vitest';
import { goMinorVersion } from './go-toolchain.ts';
import { goModFor } from './kubernetes-binary.ts';

describe('goMinorVersion', () => {
  it.each([
    ['go version go1.26.8 linux/amd64', 26],
    ['go version go1.21 linux/arm64', 21],
    ['go version devel go1.27-abc', undefined],
    ['', undefined],
  ])('of %j is %s', (text, minor) => {
    expect(goMinorVersion(text)).toBe(minor);
  });
});

describe('goModFor', () => {
  it('replaces the staging modules and nothing else', () => {
    const kubernetes = {
      Go: '1.26.0',
      Replace: [
        { Old: { Path: 'k8s.io/api' }, New: { Path: './staging/src/k8s.io/api' } },
        { Old: { Path: 'example.org/fork' }, New: { Path: 'example.org/other' } },
      ],
    };
    expect(goModFor(kubernetes, '1.36.3')).toBe(
      'module cluster-tools\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.36.3\n\n' +
        'replace (\n\tk8s.io/api => k8s.io/api v0.36.3\n)\n',
    );
  });
});
