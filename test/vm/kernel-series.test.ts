import { describe, expect, it } from 'vitest';
import { isInSeries, kernelPackages, newestVersion } from './kernel-series.ts';

const MADISON = `
linux-image-cloud-amd64 | 7.3.4-1~bpo13+1 | http://mirror trixie-backports/main amd64 Packages
linux-image-cloud-amd64 | 7.2.12-1 | http://mirror forky/main amd64 Packages
linux-image-cloud-amd64 | 6.12.118-1 | http://mirror trixie-security/main amd64 Packages
linux-image-cloud-amd64 | 6.12.117-1 | http://mirror trixie/main amd64 Packages
linux-image-cloud-amd64 | 6.1.192-3 | http://mirror bookworm-security/main amd64 Packages
linux-image-cloud-amd64 | 5.10.262-1 | http://mirror bullseye-security/main amd64 Packages
`;

describe('kernel series', () => {
  it('finds the newest version of each', () => {
    expect(newestVersion(MADISON, '7')).toBe('7.3.4-1~bpo13+1');
    expect(newestVersion(MADISON, '6.12')).toBe('6.12.118-1');
    expect(newestVersion(MADISON, '6.1')).toBe('6.1.192-3');
    expect(newestVersion(MADISON, '5.10')).toBe('5.10.262-1');
    expect(() => newestVersion('', '6.1')).toThrow('6.1');
  });

  it('does not take 6.12 for 6.1 or 70 for 7', () => {
    expect(isInSeries('6.12.1-1', '6.1')).toBe(false);
    expect(isInSeries('70.1-1', '7')).toBe(false);
  });

  it('follows only kernel packages of exactly that version', () => {
    const depends =
      ' dracut | initramfs-tools (>= 0.120), linux-base-7.3.4+deb13-cloud-amd64 (= 7.3.4-1), ' +
      'linux-binary-7.3.4+deb13-cloud-amd64 (= 7.3.4-1), linux-modules-7.3.4+deb13-cloud-amd64 (= 7.3.4-1), ' +
      'linux-image-other (= 1-1), linux-image-old';
    expect(kernelPackages(depends, '7.3.4-1')).toEqual([
      'linux-binary-7.3.4+deb13-cloud-amd64=7.3.4-1',
      'linux-modules-7.3.4+deb13-cloud-amd64=7.3.4-1',
    ]);
  });
});
